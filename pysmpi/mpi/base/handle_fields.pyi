class HandleFields:
    __slots__ = ()

def write_number(handle: HandleFields, number: int, /) -> None: ...
