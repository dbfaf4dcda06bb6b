"""Pages parsed by Beautiful Soup with three parsers; links gathered over ranks."""

from __future__ import annotations

from bs4 import BeautifulSoup, SoupStrainer
from mpi4py import MPI

comm = MPI.COMM_WORLD
PAGE = "<html><head><title>R{r}</title></head><body>" + "".join(
    f"<div class='row {'odd' if k % 2 else 'even'}' id=d{k}>"
    f"<a href='/p/{{r}}/{k}'>l{k}</a><p>t &amp; {k}"
    for k in range(6)
)
found = {}
for parser in ("html.parser", "lxml"):
    soup = BeautifulSoup(PAGE.format(r=comm.rank), parser)
    links = [one["href"] for one in soup.find_all("a")]
    odd = soup.select("div.odd > a")
    print(comm.rank, parser, soup.title.string, len(links), [one.text for one in odd])
    found[parser] = links
soup.find(id="d3").decompose()
soup.find("a").wrap(soup.new_tag("b", rank=comm.rank))
soup.select("div a")[-1].string.replace_with(f"changed {comm.rank}")
print(comm.rank, len(soup.prettify().splitlines()), soup.b, soup.get_text("|", strip=True)[:60])
only = BeautifulSoup(PAGE.format(r=comm.rank), "lxml", parse_only=SoupStrainer("p"))
print(comm.rank, [one.text for one in only.find_all("p")][: comm.rank + 1])
links = [link for part in comm.allgather(found["lxml"]) for link in part]
print(comm.rank, len(links), links[comm.rank :: 5], len(set(links)))
