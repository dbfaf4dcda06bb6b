"""Branching bisimulation: equivalence of two systems without regard to hidden steps.

Classes of states are refined by signatures: the possible steps of a state after hidden steps within
its class (Blom and Orzan, Distributed branching bisimulation reduction of state spaces, 2003).
Endless hidden loops, such as polling, are ignored, as in the paper's tool.
"""

from __future__ import annotations

from collections.abc import Hashable

TAU = ""

# For each state, the label and the target of its transitions.
Transitions = list[list[tuple[str, int]]]


def equivalent(one: Transitions, other: Transitions) -> tuple[bool, int]:
    """Whether the initial states (0) of two systems are branching bisimilar; number of classes."""
    shift = len(one)
    both = one + [[(label, target + shift) for label, target in each] for each in other]
    classes = branching_classes(both)
    return classes[0] == classes[shift], max(classes) + 1


def branching_classes(transitions: Transitions) -> list[int]:
    """The number of each state's class, numbered from 0."""
    component = _hidden_components(transitions)
    size = max(component) + 1
    leaving: list[set[tuple[str, int]]] = [set() for _ in range(size)]
    for state, each in enumerate(transitions):
        here = component[state]
        for label, target in each:
            if label != TAU or component[target] != here:
                leaving[here].add((label, component[target]))
    # Components are numbered so that hidden steps lead to smaller numbers only.
    classes = [0] * size
    count = 1
    while True:
        signatures: list[frozenset[tuple[str, int]]] = []
        numbers: dict[Hashable, int] = {}
        new = []
        for here in range(size):
            signature: set[tuple[str, int]] = set()
            for label, target in leaving[here]:
                if label == TAU and classes[target] == classes[here]:
                    signature |= signatures[target]
                else:
                    signature.add((label, classes[target]))
            signatures.append(frozenset(signature))
            key = (classes[here], signatures[here])
            new.append(numbers.setdefault(key, len(numbers)))
        classes = new
        if len(numbers) == count:
            return [classes[here] for here in component]
        count = len(numbers)


def _hidden_components(transitions: Transitions) -> list[int]:
    """Strongly connected components over hidden steps, numbered in reverse topological order."""
    hidden = [[target for label, target in each if label == TAU] for each in transitions]
    number = [-1] * len(hidden)
    low = [0] * len(hidden)
    component = [-1] * len(hidden)
    stack: list[int] = []
    counter = components = 0
    for root in range(len(hidden)):
        if number[root] >= 0:
            continue
        number[root] = low[root] = counter
        counter += 1
        stack.append(root)
        path = [(root, iter(hidden[root]))]
        while path:
            state, targets = path[-1]
            for target in targets:
                if number[target] < 0:
                    number[target] = low[target] = counter
                    counter += 1
                    stack.append(target)
                    path.append((target, iter(hidden[target])))
                    break
                if component[target] < 0:
                    low[state] = min(low[state], number[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[state])
                if low[state] == number[state]:
                    while True:
                        member = stack.pop()
                        component[member] = components
                        if member == state:
                            break
                    components += 1
    return component
