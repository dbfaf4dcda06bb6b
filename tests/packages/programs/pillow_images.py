"""Images of Pillow: drawn, filtered, transformed, compressed; pixels reduced over ranks."""

from __future__ import annotations

import hashlib
import io

import numpy as np
from mpi4py import MPI
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

comm = MPI.COMM_WORLD
picture = Image.new("RGB", (96, 64), (10 * comm.rank, 20, 200))
draw = ImageDraw.Draw(picture)
for k in range(12):
    box = (4 * k, 3 * k, 4 * k + 20, 3 * k + 15)
    draw.ellipse(box, fill=((37 * k) % 256, (91 * comm.rank) % 256, 5 * k), outline="white")
draw.text((3, 3), f"rank {comm.rank}", fill="yellow")


def digest(image: Image.Image) -> str:
    return hashlib.sha1(image.tobytes()).hexdigest()[:12]


print(comm.rank, digest(picture), picture.getpixel((20, 15)), picture.getbbox())
for one in (
    picture.filter(ImageFilter.GaussianBlur(2)),
    picture.rotate(30, Image.Resampling.BICUBIC, expand=True),
    picture.resize((31, 17), Image.Resampling.LANCZOS),
    ImageOps.equalize(picture.convert("L")),
    picture.quantize(16).convert("RGB"),
):
    print(comm.rank, one.size, one.mode, digest(one))
for kind in ("PNG", "JPEG", "BMP", "TIFF", "GIF", "WEBP"):
    file = io.BytesIO()
    picture.save(file, kind)
    again = Image.open(io.BytesIO(file.getvalue()))
    print(comm.rank, kind, file.tell(), again.size, digest(again.convert("RGB")))
total = np.zeros((64, 96, 3), np.int64)
comm.Allreduce(np.asarray(picture, np.int64), total)
print(comm.rank, total.sum(), total[20, 30].tolist())
images = comm.allgather(picture)
difference = ImageChops.difference(picture, images[(comm.rank + 1) % comm.size])
print(comm.rank, digest(difference), difference.getextrema())
