"""Assumptions about packages and programs from their names and text, each with its reason.

All other decisions are made by observation. These have to be made before the code in question runs:

| assumption | decides | why it is not observed |
| --- | --- | --- |
| `KNOWN_SHARED` | which packages are loaded once for all ranks | whether a package keeps state of a process shows when it has been used; to load it again for each rank is then too late, and to load all for each rank takes seconds and gigabytes |
| `KNOWN_PRIVATE` | which tools each rank loads for itself | their globals hold the running test, and the tool is loaded before it |
| `BUILT_WITH_MPI` | which of the shared packages are examined for calls of MPI | to look at the files of all of them takes tenths of a second |
| `CALLS_MPI` | whether a package with extension modules is private | the first import decides for all ranks; a package that imports mpi4py later, in a function, has been shared by then |
| `STATEMENT` | which packages a source imports | the same; a parser takes 20 times as long for a large package |
| `COMPILES` | which finalizers belong to the process | whether a cache of all ranks keeps an object shows only when another rank uses it, after the finalizer has released its compiled code |
| `REDIRECTS` | which programs get standard streams of their own | text that ranks have written to a shared buffer cannot be told apart when one of them redirects its descriptor |

That functions assign to a global name (`kinds/assigned.py`) is no assumption: the compiler notes it in
their code. To compare all globals of shared packages at switches would take long, and would also
find what imports and lazy attributes assign for all ranks.
"""  # noqa: E501

from __future__ import annotations

# Large packages and their dependencies: they hold hardly any state of a process, or consist mostly
# of compiled code. What they do hold is exchanged by their files in `pysmpi/patches/`.
KNOWN_SHARED = frozenset(
    """
    numpy scipy pandas matplotlib mpl_toolkits pylab torch torchvision torchaudio triton functorch
    torchgen jax jaxlib tensorflow tensorboard keras numba llvmlite cupy cupyx cupy_backends sklearn
    skimage sympy mpmath h5py tables netCDF4 cftime pyarrow polars duckdb numexpr bottleneck
    numcodecs sparse statsmodels patsy networkx PIL imageio tifffile cv2 lxml cffi pycparser cython
    Cython astropy erfa shapely pyproj geopandas zmq tornado pydantic pydantic_core annotated_types
    sqlalchemy requests joblib
    urllib3 certifi idna charset_normalizer aiohttp cryptography psutil yaml google grpc ray onnx
    onnxruntime transformers tokenizers datasets accelerate lightning pytorch_lightning spacy nltk
    gensim xgboost lightgbm catboost plotly seaborn setuptools pkg_resources _distutils_hack
    pip debugpy pydevd pytz tzdata dateutil packaging pyparsing cycler kiwisolver contourpy
    fontTools six typing_extensions typing_inspection opt_einsum ml_dtypes threadpoolctl
    narwhals cloudpickle toolz tlz cytoolz locket partd jinja2 markupsafe filelock pygments babel
    docutils sphinx attr attrs mypy_extensions multidict yarl frozenlist propcache aiosignal
    greenlet gevent msgpack sortedcontainers importlib_metadata basix ufl
    pytensor pymc arviz arviz_base arviz_stats arviz_plots tensorflow_probability tf_keras
    """.split()
)

# Shared packages that exist with and without MPI.
BUILT_WITH_MPI = frozenset("h5py netCDF4 tables".split())

# Tools whose globals hold the running test, or the code that is measured.
KNOWN_PRIVATE = frozenset(
    "pytest _pytest pluggy hypothesis _hypothesis_globals nose coverage".split()
)

# The source of a package that imports mpi4py, or calls methods of a communicator that it is given.
CALLS_MPI = (
    rb"(?m)^[ \t]*(?:from|import)[ \t]+[^\n#]*\bmpi4py\b"
    rb"|(?:import_module|__import__)\([\s'\"]*mpi4py"
    rb"|\.(?:Get_rank|Get_size|Allreduce|Allgatherv?|Alltoallv?|Bcast|Sendrecv)\("
    rb"|\bcomm\.(?:bcast|gather|scatter|allreduce|allgather|[bB]arrier|rank|size)\b"
)

# A line with an import, or one that begins a statement at the outermost level.
STATEMENT = (
    rb"(?m)^([ \t]*)"
    rb"(?:(?:from|import)[ \t]+([A-Za-z_]\w*)|(?<![ \t])(def|class|async|@|\w+))"
)

# Packages that compile for all ranks. Their finalizers release compiled code when its object dies,
# and do nothing at the end of a process.
COMPILES = frozenset({"numba"})

# The function of `os` that code uses to redirect a standard descriptor.
REDIRECTS = "dup2"
