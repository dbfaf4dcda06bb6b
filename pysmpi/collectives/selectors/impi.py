"""Intel MPI 4.1.3's tables for Stampede, as SMPI carries them (selector `impi`).

The tables depend on the number of ranks on a node (1, 2, 4, 8 or 16; others and unequal nodes count
as 1), then on the number of ranks, then on bytes: one block for alltoall, allgather, gather and
scatter, all blocks for reduce_scatter and allgatherv, the whole vector for bcast, reduce and
allreduce. The numbers are Intel's; the legends name the algorithms that SMPI runs for them.
"""

from __future__ import annotations

from pysmpi.collectives.call import Call
from pysmpi.collectives.registry import SELECTORS, Selector
from pysmpi.collectives.selectors.nonblocking import SMPI
from pysmpi.collectives.selectors.tables import SelectorTable


def _tables(legend: str, **by_node: str) -> dict[int, SelectorTable]:
    """Tables by ranks on a node; `_4="=2"` refers to the table of another number."""
    tables: dict[int, SelectorTable] = {}
    for key, text in by_node.items():
        same = text.removeprefix("=")
        tables[int(key[1:])] = tables[int(same)] if same != text else SelectorTable(text, legend)
    return tables


ALLREDUCE = _tables(
    "1=rdb 2=rab1 3=redbcast 4=mvapich2_two_level 5=smp_binomial 6=mvapich2_two_level "
    "7=ompi_ring_segmented 8=ompi_ring_segmented",
    _1="""
    P <= 2   <6:7 <85:1 <192:7 <853:1 <1279:7 <16684:1 <34279:8 <1681224:3 else:7
    P <= 4   <16:7 <47:1 <2062:7 <16699:1 <33627:7 <70732:8 <1300705:3 else:8
    P <= 8   <118:1 <146:4 <16760:1 <36364:6 <136239:8 <315710:7 <3220366:3 else:8
    P <= 16  <934:1 <1160:6 <15505:1 <52730:2 <300705:8 <563680:7 else:3
    else     <5:6 <11:4 <182:1 <700:6 <1450:4 <11146:1 <25539:6 <37634:4 <93784:6 <817658:2 else:3
    """,
    _2="""
    P <= 4    <2084:7 <15216:1 <99715:7 <168666:3 <363889:2 else:7
    P <= 8    <14978:1 <66879:2 <179296:8 <304801:3 <704509:7 else:2
    P <= 16   <16405:1 <81784:2 <346385:8 <807546:7 <1259854:2 else:3
    P <= 32   <8913:1 <103578:2 <615876:8 else:2
    P <= 64   <1000:1 <2249:2 <6029:1 <325357:2 <1470976:8 <2556670:7 else:3
    P <= 128  <664:1 <754706:2 <1663862:4 <3269097:2 else:7
    else      <789:1 <2247589:2 else:8
    """,
    _4="""
    P <= 4    <5738:1 <197433:2 <593742:7 else:2
    P <= 8    <5655:1 <75166:2 <177639:8 <988014:3 <1643869:2 <2494859:8 else:2
    P <= 16   <587:1 <3941:2 <9003:1 <101469:2 <355768:8 <3341814:3 else:8
    P <= 32   <795:1 <146567:2 <732118:8 else:3
    P <= 64   <528:1 <221277:2 <1440737:8 else:3
    P <= 128  <481:1 <593833:2 <2962021:8 else:7
    P <= 256  <584:1 else:2
    else      <604:1 <2997006:2 else:8
    """,
    _8="""
    P <= 8    <2560:1 <114230:6 <288510:8 <664038:2 <1339913:6 else:4
    P <= 16   <497:1 <54201:2 <356217:8 <3413609:3 else:8
    P <= 32   <377:1 <109745:2 <716514:8 <3976768:3 else:8
    P <= 64   <109:1 <649:5 <266080:2 <1493331:8 <2541403:7 else:3
    P <= 128  <7:1 <751:5 <408808:2 else:8
    P <= 256  <828:5 <909676:2 else:8
    P <= 512  <847:5 <1007066:2 <1068775:4 <2803389:2 else:8
    else      <1974:5 <4007876:2 else:8
    """,
    _16="""
    P <= 16   <409:1 <768:6 <1365:4 <3071:6 <11299:2 <21746:6 <55629:2 <86065:4 <153867:2 <590560:6
              <1448760:2 else:8
    P <= 32   <6:1 <24:5 <86:1 <875:5 <74528:2 <813050:8 <1725981:7 else:8
    P <= 64   <1018:5 <1217:6 <2370:5 <160654:2 <1885487:8 else:3
    P <= 128  <2291:5 <434465:2 <3525103:8 else:7
    P <= 256  <2189:5 <713154:2 else:8
    P <= 512  <2140:5 <1235056:2 else:8
    else      <2153:5 <2629855:2 else:8
    """,
)

ALLTOALL = _tables(
    "1=bruck 2=mvapich2_scatter_dest 3=pair 4=mvapich2",
    _1="""
    P <= 2   3
    P <= 4   2
    P <= 8   2
    P <= 16  <84645:2 <167570:3 <413152:4 else:2
    P <= 32  <61:1 <164:2 <696:1 <143254:2 <387024:3 else:2
    P <= 64  <523:1 <146088:2 <488989:4 else:2
    else     <270:1 <628:4 else:2
    """,
    _2="""
    P <= 4   <1:2 <75:3 else:2
    P <= 8   <709:1 else:2
    P <= 16  <40048:2 <155927:3 else:4
    P <= 32  <105:1 <130:2 <1030:1 <131072:2 <271838:3 else:2
    else     <521:1 <2032:4 <2412:2 <4112:4 <61620:2 <427408:3 else:4
    """,
    _4="""
    P <= 8   <512:1 else:2
    P <= 64  <7:1 <199:4 <764:1 <6409:4 <20026:2 <32768:3 <221643:4 else:3
    else     <262:1 <7592:4 <22871:2 <47538:3 <101559:4 else:3
    """,
    _8="""
    P <= 16   <973:1 <5126:4 <16898:2 <65456:4 else:2
    P <= 32   <874:1 <6727:4 <17912:2 <41513:3 <199604:4 else:3
    P <= 64   <5:1 <114:4 <552:1 <8130:4 <34486:3 <160113:4 else:3
    P <= 128  <270:1 <3679:4 <64367:3 <146595:4 else:3
    else      <133:1 <4017:4 <32768:3 <76351:4 else:3
    """,
    _16="""
    P <= 32   <963:1 <1818:4 <20007:2 <54296:4 <169735:3 else:2
    P <= 64   <17:1 <42:4 <592:1 <2015:4 <2753:2 <6496:3 <20402:4 <36246:3 <93229:4 else:3
    P <= 128  <18:1 <40:4 <287:1 <1308:4 <6842:1 <36986:3 <129081:4 else:3
    P <= 256  <135:1 <1538:4 <3267:1 <4132:3 <31469:4 else:3
    else      <66:1 <1637:4 <2626:1 <4842:4 <33963:3 <72978:4 else:3
    """,
)

BARRIER = _tables(
    "1=ompi_basic_linear 2=ompi_recursivedoubling 3=ompi_basic_linear "
    "4=ompi_recursivedoubling 5=ompi_basic_linear 6=ompi_basic_linear",
    _1="""
    P <= 2   2
    P <= 4   6
    P <= 8   1
    P <= 64  2
    else     6
    """,
    _2="""
    P <= 2    1
    P <= 4    3
    P <= 8    5
    P <= 32   2
    P <= 128  3
    else      4
    """,
    _4="""
    P <= 4   2
    P <= 8   5
    P <= 32  2
    else     4
    """,
    _8="""
    P <= 8   1
    P <= 32  2
    else     4
    """,
    _16="=4",
)

BCAST = _tables(
    "1=binomial_tree 2=NTSL 3=NTSL 4=SMP_binomial 5=NTSL 6=SMP_linear 7=mvapich2",
    _1="""
    P <= 2  <1:2 <402:7 <682:5 <1433:4 <5734:7 <21845:1 <95963:6 <409897:5 else:1
    P <= 4  7
    P <= 8  <3:6 <4:7 <25:6 <256:1 <682:6 <1264:1 <2234:6 <6655:5 <16336:1 <3998434:7 else:6
    else    7
    """,
    _2="""
    P <= 4   <806:4 <18093:7 <51366:6 <182526:4 <618390:1 else:7
    P <= 8   <24:1 <74:4 <18137:1 <614661:7 <1284626:1 else:2
    P <= 16  <1:1 <158:7 <16955:1 else:7
    P <= 32  <242:7 <10345:1 else:7
    else     <1:1 <737:7 <5340:1 else:7
    """,
    _4="""
    P <= 8  <256:4 <17181:1 else:7
    else    7
    """,
    _8="""
    P <= 16  <3:1 <318:7 <1505:1 else:7
    P <= 32  <422:7 <851:1 else:7
    P <= 64  <468:7 <699:1 else:7
    else     7
    """,
    _16="=4",
)

REDUCE = _tables(
    "1=mvapich2 2=binomial 3=mvapich2 4=mvapich2_two_level 5=rab 6=rab",
    _1="""
    else  1
    """,
    _2="""
    P <= 2  1
    P <= 4  <10541:3 else:1
    else    1
    """,
    _4="""
    P <= 256  1
    else      <45:3 else:1
    """,
    _8="""
    P <= 512  1
    else      <5:1 <11882:3 else:1
    """,
    _16="=4",
)

REDUCE_SCATTER = _tables(
    "1=halving 2=mpich_pair 3=mpich_rdb 4=default 5=default",
    _1="""
    P <= 2   <5:4 <522429:2 <1375877:5 <2932736:2 else:5
    P <= 4   <4:4 <15:1 <120:3 <651:1 <12188:3 <33890:1 <572117:2 <1410202:5 else:2
    P <= 8   <4:4 <2263:1 <25007:3 <34861:1 <169625:2 <2734000:4 else:2
    P <= 16  <4:4 <14228:1 <46084:3 <522139:2 else:5
    P <= 32  <4:4 <27516:1 <61693:3 <2483469:2 else:5
    P <= 64  <4:4 <100396:1 else:2
    else     <4:4 <186926:1 <278259:3 <1500100:2 else:5
    """,
    _2="""
    P <= 2    <6:1 else:2
    P <= 4    <5:4 <13:5 <59:3 <76:1 <91488:3 <680063:4 else:2
    P <= 8    <4:4 <11:5 <31:1 <69615:3 <202632:2 <396082:5 <1495696:4 else:2
    P <= 16   <4:4 else:1
    P <= 32   <4:4 <992:1 <71417:3 else:2
    P <= 64   <4:4 <1472:1 <196592:3 else:2
    P <= 128  <4:4 <32892:1 <381072:3 else:2
    else      <4:4 <33262:1 <1571397:3 <2211398:5 else:4
    """,
    _4="""
    P <= 4    <12:4 <27:5 <49:3 <187:1 <405673:3 <594687:4 else:2
    P <= 8    <24:5 <155:1 <204501:3 <274267:5 else:4
    P <= 16   <63:1 <72:3 <264:1 <168421:3 <168421:4 else:2
    P <= 32   <4:4 <12:1 <18:5 <419:1 <188739:3 <716329:4 <1365841:5 <2430194:2 else:4
    P <= 64   <4:4 <17:5 <635:1 <202937:3 <308253:5 <1389874:4 else:2
    P <= 128  <4:4 <16:5 <1238:1 <280097:3 <631434:5 <2605072:4 else:2
    P <= 256  <4:4 <16:5 <2418:1 else:3
    else      <4:4 <16:5 <33182:1 <3763779:3 else:4
    """,
    _8="""
    P <= 8    <5:4 <494:1 <97739:3 <522836:2 <554174:5 else:2
    P <= 16   <5:4 <62:1 <94:3 <215:1 <185095:3 <454784:4 <607911:5 else:4
    P <= 32   <4:4 <302:1 <250841:3 <665822:4 <1760980:5 else:4
    P <= 64   <4:4 <41:5 <306:1 <332405:3 <1269189:4 <3712421:5 else:4
    P <= 128  <4:4 <39:5 <526:1 <487878:3 else:4
    P <= 256  <4:4 <36:5 <1382:1 <424162:3 <632881:5 <1127566:3 else:4
    P <= 512  <4:4 <34:5 <5884:1 else:3
    else      <5:4 <32:5 <25105:1 else:3
    """,
    _16="=4",
)

ALLGATHER = _tables(
    "1=rdb 2=bruck 3=ring 4=GB",
    _1="""
    P <= 4   <1:4 <384:1 <1533:4 <3296:1 <10763:4 <31816:3 <193343:4 <405857:3 <597626:4 <1844323:3
             else:4
    P <= 8   <12:4 <46:1 <205:4 <3422:2 <4200:4 <8748:1 <24080:3 <33244:4 <371159:1 else:3
    P <= 16  <3:4 <53:1 <100:4 <170:1 <6077:4 <127644:1 <143741:4 else:3
    else     <184:1 <320:4 <759:1 <1219:4 <2633:1 <8259:4 <123678:1 <160801:4 <284341:1 else:4
    """,
    _2="""
    P <= 8   <490:1 <558:2 <2319:1 <46227:3 <2215101:1 else:3
    P <= 16  <1005:1 <1042:2 <2059:1 else:3
    else     <2454:1 else:3
    """,
    _4="""
    P <= 8  <2861:1 else:3
    else    <605:1 else:3
    """,
    _8="""
    P <= 16   <66:1 <213:4 <514:1 else:3
    P <= 32   <91:1 <213:4 <514:1 else:3
    P <= 64   <71:1 <213:4 <514:1 else:3
    P <= 128  <305:1 else:3
    else      <213:1 else:3
    """,
    _16="=4",
)

ALLGATHERV = _tables(
    "1=mpich_rdb 2=ompi_bruck 3=ring 4=GB",
    _1="""
    P <= 2  <259668:3 <635750:4 else:3
    P <= 4  <1:1 <5:4 <46:1 <2590:2 <1177259:3 <2767234:4 else:3
    P <= 8  <99:2 <143:1 <4646:2 <63522:3 <2187806:4 else:3
    else    <1:1 <5:4 <46:1 <2590:2 <1177259:3 <2767234:4 else:3
    """,
    _2="""
    P <= 4   <3147:1 <5622:2 else:3
    P <= 8   <975:1 <4158:2 else:3
    P <= 16  <2146:1 else:3
    P <= 32  <81:1 <414:2 <1190:1 else:3
    else     <1:2 <3:1 <783:2 <1782:4 else:3
    """,
    _4="""
    P <= 8   <2554:1 else:3
    P <= 16  <272:1 <657:2 <2078:1 else:3
    P <= 32  <1081:1 else:3
    P <= 64  <547:1 else:3
    else     <19:1 <239:2 <327:1 <821:4 else:3
    """,
    _8="""
    P <= 16   <55:1 <514:2 else:3
    P <= 32   <53:1 <167:4 <514:2 else:3
    P <= 64   <13:1 <319:4 else:3
    P <= 128  <2:1 <11:2 <48:1 <201:2 <304:1 <1048:4 else:3
    else      <5:1 <115:4 <129:1 <451:4 else:3
    """,
    _16="=4",
)

GATHER = _tables(
    "1=ompi_binomial 2=ompi_binomial 3=mvapich2",
    _1="""
    P <= 8   <17561:3 <44791:2 else:3
    P <= 16  <16932:3 <84425:2 <158363:3 <702801:2 <1341444:3 <2413569:2 else:3
    else     <47187:3 <349696:2 else:3
    """,
    _2="""
    else  3
    """,
    _4="=2",
    _8="""
    P <= 16   3
    P <= 32   <9:2 else:3
    P <= 64   <784:2 else:3
    P <= 128  <160:3 <655:2 else:3
    else      3
    """,
    _16="=2",
)

SCATTER = _tables(
    "1=ompi_binomial 2=ompi_binomial 3=mvapich2",
    _1="""
    P <= 2   <16391:1 else:3
    P <= 4   <16723:3 <153541:2 <425631:3 <794142:2 <1257027:3 else:2
    P <= 8   <2633:3 <6144:2 <14043:3 <24576:2 <107995:3 <1752729:2 else:3
    P <= 16  <2043:3 <2252:2 <17749:3 <106020:2 <628654:3 <3751354:2 else:3
    else     <65907:3 <245132:2 <1042439:3 else:2
    """,
    _2="""
    else  3
    """,
    _4="""
    P <= 8   3
    P <= 16  <140:3 <1302:1 else:3
    P <= 32  <159:3 <486:1 else:3
    P <= 64  <149:1 else:3
    else     <139:1 else:3
    """,
    _8="""
    P <= 16   <587:1 <1370:2 <2102:1 else:3
    P <= 32   <1038:1 <2065:2 else:3
    P <= 64   <515:1 <2069:2 else:3
    P <= 128  <284:1 <796:2 else:3
    else      <139:1 else:3
    """,
    _16="=4",
)

ALLTOALLV = _tables(
    "1=ompi_basic_linear 2=bruck",
    _1="""
    else  1
    """,
    _2="=1",
    _4="""
    P <= 8  1
    else    <4:1 else:2
    """,
    _8="""
    P <= 16  1
    else     2
    """,
    _16="=4",
)

_OPERATIONS = frozenset(
    ("allreduce", "alltoall", "alltoallv", "barrier", "bcast", "reduce", "reduce_scatter",
     "allgather", "allgatherv", "gather", "scatter")
)  # fmt: skip


def _choose(tables: dict[int, SelectorTable], call: Call, size: float) -> str:
    table = tables.get(call.layout.per_node, tables[1])
    return table.choose(call.size, size)


def _all_blocks(call: Call) -> int:
    return sum(call.recv_counts or ()) * call.type_size


def _reduce_scatter(call: Call) -> str:
    name = _choose(REDUCE_SCATTER, call, _all_blocks(call))
    if name == "halving":
        return "ompi_basic_recursivehalving" if call.commutative else "mvapich2"
    return name


SELECTORS.add(
    Selector(
        "impi",
        "Intel MPI 4.1.3's tables for Stampede, as in SMPI",
        {
            "allreduce": lambda call: _choose(ALLREDUCE, call, call.nbytes),
            "alltoall": lambda call: _choose(ALLTOALL, call, call.nbytes),
            "alltoallv": lambda call: _choose(ALLTOALLV, call, 1),
            "barrier": lambda call: _choose(BARRIER, call, 1),
            "bcast": lambda call: _choose(BCAST, call, call.nbytes),
            "reduce": lambda call: _choose(REDUCE, call, call.nbytes),
            "reduce_scatter": _reduce_scatter,
            "allgather": lambda call: _choose(ALLGATHER, call, call.nbytes),
            "allgatherv": lambda call: _choose(ALLGATHERV, call, _all_blocks(call)),
            "gather": lambda call: _choose(GATHER, call, call.nbytes),
            "scatter": lambda call: _choose(SCATTER, call, call.nbytes),
        },
        lambda call: call.op in _OPERATIONS,
        nonblocking=SMPI,
    )
)
