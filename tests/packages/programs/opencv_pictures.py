"""Pictures in OpenCV: filters, edges, contours, transforms, features; reduced over ranks."""

from __future__ import annotations

import cv2
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
cv2.setNumThreads(1)
picture = np.zeros((120, 160), np.uint8)
cv2.circle(picture, (40 + 10 * comm.rank, 50), 25, 255, -1)
cv2.rectangle(picture, (90, 60), (140, 60 + 10 * (comm.rank + 1)), 180, -1)
cv2.putText(picture, f"r{comm.rank}", (5, 110), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 99, 1)
print(comm.rank, int(picture.sum()), cv2.countNonZero(picture))
edges = cv2.Canny(picture, 50, 150)
contours, _ = cv2.findContours(picture, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
areas = sorted((cv2.contourArea(one) for one in contours), reverse=True)[:2]
print(comm.rank, cv2.countNonZero(edges), len(contours), areas)
blurred = cv2.GaussianBlur(picture, (7, 7), 1.5)
matrix = cv2.getRotationMatrix2D((80, 60), 15.0 * comm.rank, 0.9)
turned = cv2.warpAffine(blurred, matrix, (160, 120))
print(comm.rank, float(blurred.mean()), float(turned.mean()))
moments = cv2.moments(picture)
print(comm.rank, moments["m10"] / moments["m00"], cv2.HuMoments(moments).ravel()[0])
threshold, _ = cv2.threshold(picture, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
spectrum = cv2.dft(picture.astype(np.float32))
print(comm.rank, threshold, float(abs(spectrum).max()))
ok, code = cv2.imencode(".png", picture)
pictures = [cv2.imdecode(one, cv2.IMREAD_GRAYSCALE) for one in comm.allgather(code)]
print(comm.rank, ok, [int(one.sum()) for one in pictures])
total = np.empty(picture.shape, np.int32)
comm.Allreduce(picture.astype(np.int32), total)
print(comm.rank, int(total.max()), int(cv2.norm(picture, pictures[(comm.rank + 1) % comm.size])))
try:
    cv2.GaussianBlur(picture, (4, 4), 1)
except cv2.error as error:
    print(comm.rank, error.func, error.code)
