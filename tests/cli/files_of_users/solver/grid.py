import numpy


class Grid:
    @staticmethod
    def allocate(count):
        return numpy.zeros(count)
