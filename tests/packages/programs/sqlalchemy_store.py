"""SQLAlchemy's ORM: a database in memory in each rank, a file that rank 0 fills for all."""

from __future__ import annotations

from mpi4py import MPI
from sqlalchemy import ForeignKey, create_engine, event, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

comm = MPI.COMM_WORLD


class Base(DeclarativeBase):
    pass


class Site(Base):
    __tablename__ = "site"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    samples: Mapped[list[Sample]] = relationship(
        back_populates="site", cascade="all, delete-orphan"
    )


class Sample(Base):
    __tablename__ = "sample"
    id: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float]
    site_id: Mapped[int] = mapped_column(ForeignKey("site.id"))
    site: Mapped[Site] = relationship(back_populates="samples")


def fill(engine, sites: int, samples: int) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        for i in range(sites):
            values = [Sample(value=((i * 31 + k * 17) % 101) / 8) for k in range(samples)]
            session.add(Site(name=f"site {i}", samples=values))
        session.commit()


statements = 0
engine = create_engine("sqlite://")


@event.listens_for(engine, "before_cursor_execute")
def count(*_: object) -> None:
    global statements
    statements += 1


fill(engine, 3 + comm.rank, 10)
with Session(engine) as session:
    query = (
        select(Site.name, func.count(Sample.id), func.avg(Sample.value))
        .join(Sample).where(Sample.value > 2).group_by(Site.id).order_by(Site.name)
    )  # fmt: skip
    for row in session.execute(query):
        print(comm.rank, *row)
    session.add(Site(name="site 0"))
    try:
        session.commit()
    except IntegrityError as error:
        session.rollback()
        print(comm.rank, error.orig)
    session.delete(session.scalars(select(Site).where(Site.name == "site 1")).one())
    session.commit()
    print(comm.rank, session.scalar(select(func.count()).select_from(Sample)), statements)
    first = session.get(Site, 1)
    received = comm.allgather([(one.id, one.value) for one in first.samples])
print(comm.rank, len(received), sum(value for rows in received for _, value in rows))

shared = create_engine("sqlite:///all.db")
if comm.rank == 0:
    fill(shared, 4, 25)
comm.barrier()
with Session(shared) as session:
    mine = session.scalars(select(Sample.value).where(Sample.site_id == comm.rank + 1)).all()
print(comm.rank, len(mine), comm.allreduce(sum(mine)))
