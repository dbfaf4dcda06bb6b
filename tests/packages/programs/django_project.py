"""A Django project in one file: models, a database a rank, queries, views and templates."""

from __future__ import annotations

import django
from django.conf import settings
from mpi4py import MPI

comm = MPI.COMM_WORLD
settings.configure(
    SECRET_KEY="key", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], USE_TZ=True,
    INSTALLED_APPS=["django.contrib.contenttypes"], DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"rank{comm.rank}.db"}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)  # fmt: skip
django.setup()

from django import forms  # noqa: E402
from django.db import connection, models, transaction  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.template import engines  # noqa: E402
from django.test import Client, RequestFactory  # noqa: E402
from django.urls import path, reverse  # noqa: E402


class Run(models.Model):
    name = models.CharField(max_length=20, unique=True)
    seconds = models.FloatField()

    class Meta:
        app_label = "runs"


class Form(forms.Form):
    seconds = forms.FloatField(min_value=0)


def slow(request, limit):
    rows = Run.objects.filter(seconds__gt=limit).order_by("-seconds").values_list("name", "seconds")
    return JsonResponse({"rank": comm.rank, "rows": list(rows)})


def page(request):
    template = engines["django"].from_string("{% for r in runs %}{{ r.name|upper }};{% endfor %}")
    return HttpResponse(template.render({"runs": Run.objects.all()[:3]}, request))


urlpatterns = [path("slow/<int:limit>", slow, name="slow"), path("page", page)]
with connection.schema_editor() as editor:
    editor.create_model(Run)
Run.objects.bulk_create(
    Run(name=f"r{comm.rank}.{k}", seconds=k * 1.5 + comm.rank) for k in range(5)
)
try:
    with transaction.atomic():
        Run.objects.filter(name__endswith="4").delete()
        raise RuntimeError
except RuntimeError:
    pass
print(comm.rank, Run.objects.count(), Run.objects.aggregate(t=models.Sum("seconds"))["t"])
client = Client()
print(comm.rank, client.get(reverse("slow", args=[3 + comm.rank])).json())
print(comm.rank, client.get("/page").content.decode(), client.get("/none").status_code)
print(
    comm.rank, Form({"seconds": -1}).errors.get_json_data(), Form({"seconds": comm.rank}).is_valid()
)
request = RequestFactory().get("/x", {"a": comm.rank})
print(comm.rank, request.get_full_path(), settings.DATABASES["default"]["NAME"])
everything = comm.allgather(list(Run.objects.values("name", "seconds")))
print(comm.rank, sum(row["seconds"] for rows in everything for row in rows))
