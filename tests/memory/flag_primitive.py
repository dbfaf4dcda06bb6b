"""A message by one flag; a receiver may take it several times, which is wrong."""

from pysmpi.memory.primitives import Program, Variable, load, mark, start, store


def program(first=1, takes=1):
    flag = Variable("flag", 0, kind="flag", home=1)

    def sender():
        while True:
            yield start()
            yield mark("sends")
            yield store(flag, first)
            while (yield load(flag)) != 0:
                pass

    def receiver():
        while True:
            yield start()
            while (yield load(flag)) == 0:
                pass
            yield mark("receives")
            for _ in range(takes - 1):
                yield load(flag)
                yield mark("receives")
            yield store(flag, 0)

    return Program(
        "mine", [flag], [sender, receiver], specification={0: {"sends": 1}, 1: {"receives": 0}}
    )
