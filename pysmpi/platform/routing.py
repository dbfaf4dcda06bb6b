"""The links between any two points of a platform, through any number of nested zones.

A zone has routes between its direct members only. A global route therefore has three parts. The
middle part is the route between the two members of the lowest common zone that contain the end
points; it also names a gateway on either side. The first part goes from the source to the first
gateway, the last part from the second gateway to the destination; both are found in the same way. A
bypass route in the common zone replaces all three parts (SimGrid's ``bypassRoute`` and
``bypassZoneRoute``).
"""

from __future__ import annotations

from pysmpi.platform.points import Link, LocalRoute, NetPoint, ZonePoint


def resolve(src: NetPoint, dst: NetPoint) -> tuple[Link, ...] | None:
    """The links from `src` to `dst` in order; None when some zone on the way declares no route."""
    zone = src.zone
    if zone is dst.zone and zone is not None and not zone.bypasses:
        local = zone.local_route(src, dst)
        return None if local is None else local.links
    links: list[Link] = []
    return tuple(links) if _resolve(src, dst, links) else None


def _resolve(src: NetPoint, dst: NetPoint, links: list[Link]) -> bool:
    """Append the links from `src` to `dst`; return False if there is no route."""
    src_path, dst_path = _ancestors(src), _ancestors(dst)
    common = 0
    while (
        common + 1 < len(src_path)
        and common + 1 < len(dst_path)
        and src_path[common + 1] is dst_path[common + 1]
    ):
        common += 1
    zone = src_path[common]

    if zone.bypasses:
        bypass = _find_bypass(zone, src, dst, src_path[common:], dst_path[common:])
        if bypass is not None:
            start, end, route = bypass
            if start is not src and not _resolve(src, _known(route.gateway_src), links):
                return False
            links.extend(route.links)
            return end is dst or _resolve(_known(route.gateway_dst), dst, links)

    src_member = src if len(src_path) == common + 1 else src_path[common + 1]
    dst_member = dst if len(dst_path) == common + 1 else dst_path[common + 1]
    local = zone.local_route(src_member, dst_member)
    if local is None:
        return False
    if src_member is not src:
        gateway = local.gateway_src or src_path[common + 1].gateway
        if gateway is None or (gateway is not src and not _resolve(src, gateway, links)):
            return False
    links.extend(local.links)
    if dst_member is not dst:
        gateway = local.gateway_dst or dst_path[common + 1].gateway
        if gateway is None or (gateway is not dst and not _resolve(gateway, dst, links)):
            return False
    return True


def _known(gateway: NetPoint | None) -> NetPoint:
    assert gateway is not None, "construction gives every bypass between zones its gateways"
    return gateway


def _ancestors(point: NetPoint) -> list[ZonePoint]:
    """The zones that hold `point`, the root first."""
    path: list[ZonePoint] = []
    zone = point.zone
    while zone is not None:
        path.append(zone)
        zone = zone.zone
    path.reverse()
    return path


def _find_bypass(
    zone: ZonePoint,
    src: NetPoint,
    dst: NetPoint,
    src_path: list[ZonePoint],
    dst_path: list[ZonePoint],
) -> tuple[NetPoint, NetPoint, LocalRoute] | None:
    """The bypass that `zone` declares for this pair: its two ends and its links.

    Between two members of `zone` itself only a bypass of exactly these two counts. Otherwise
    SimGrid looks at the zones around both ends, the innermost first, and takes the first declared
    pair in order of the outer of the two depths; an end that is not a zone never matches.
    """
    if len(src_path) == 1 and len(dst_path) == 1:
        route = zone.bypasses.get((src, dst))
        return None if route is None else (src, dst, route)
    src_zones = src_path[:0:-1] or src_path
    dst_zones = dst_path[:0:-1] or dst_path
    for depth in range(max(len(src_zones), len(dst_zones))):
        order = [pair for i in range(depth) for pair in ((i, depth), (depth, i))]
        for i, j in [*order, (depth, depth)]:
            if i < len(src_zones) and j < len(dst_zones):
                route = zone.bypasses.get((src_zones[i], dst_zones[j]))
                if route is not None:
                    return src_zones[i], dst_zones[j], route
    return None
