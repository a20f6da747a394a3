#!/usr/bin/env python3
"""The layouts that the tables in contract/ define, compared with existing files, and how they are written."""

from __future__ import annotations

import struct
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

import contract_kernel  # noqa: E402 (the line above finds it)
import make_contract  # noqa: E402 (the same)

from contract import container, kernel, mpi_calls, otf2, trace_log  # noqa: E402 (the same)
from contract.rows import Field, Number, Struct  # noqa: E402 (the same)


class Layouts(unittest.TestCase):
    """Version 1 of each: a change here requires another version of the file."""

    def test_a_slot_of_the_container(self) -> None:
        self.assertEqual((container.VERSION, container.SLOT.size()), (1, 256))
        places = {name: at for name, (at, _) in container.SLOT.places().items()}
        expected = {"tid": 16, "start_ns": 32, "ns": 64, "count": 128, "off_since_ns": 192, "comm": 240}
        self.assertEqual({name: places[name] for name in expected}, expected)
        self.assertEqual([kind.name for kind in kernel.KINDS][:3], ["nmi", "tick", "irq"])

    def test_a_tracers_log(self) -> None:
        self.assertEqual((trace_log.VERSION, trace_log.HEAD.size(), trace_log.RECORD.size()), (2, 1248, 16))
        places = trace_log.HEAD.places()
        expected = {
            "bytes": (16, 8),
            "clock": (96, 48),
            "host": (144, 256),
            "reason": (976, 256),
            "appended": (1232, 8),
        }
        self.assertEqual({name: places[name] for name in expected}, expected)

    def test_structs_of_otf2_have_no_hole(self) -> None:
        for one in (otf2.EVENT, otf2.DEFINITION):
            self.assertEqual(sum(size for _, size in one.places().values()), one.size())

    def test_a_field_stands_at_a_multiple_of_its_size(self) -> None:
        mixed = Struct("mixed", (Field("a", "u8"), Field("b", "u64"), Field("c", "u16", 3)))
        self.assertEqual(mixed.places(), {"a": (0, 1), "b": (8, 8), "c": (16, 6)})
        self.assertEqual(mixed.size(), struct.calcsize("@BQ3H0Q"))


class Tables(unittest.TestCase):
    def test_no_name_is_there_twice(self) -> None:
        names = [name for one in mpi_calls.CALLS for name in one.names.split()]
        for list_ in (names, [kind.name for kind in kernel.KINDS], [ipi.name for ipi in kernel.IPIS]):
            self.assertEqual(len(list_), len(set(list_)))

    def test_otf2_numbers_operations_without_a_gap(self) -> None:
        numbers = sorted(number for one in trace_log.OPERATIONS for number in one.otf2.values())
        self.assertEqual(numbers, list(range(len(numbers))))


class Written(unittest.TestCase):
    def test_python_reads_what_c_lays_out(self) -> None:
        text = "\n".join(contract_kernel.container_in_python())
        found: dict = {"struct": struct}
        exec(text, found)  # noqa: S102 (it was made just now)
        self.assertEqual(found["_SLOT"].size, container.SLOT.places()[container.NOTES][0])
        self.assertEqual(found["_HEADER"].size, container.HEADER.size())

    def test_a_hole_is_nothing_that_python_reads(self) -> None:
        holed = Struct("holed", (Field("a", "u32"), Field("b", "u64")))
        with self.assertRaisesRegex(ValueError, "gap"):
            contract_kernel.groups(holed)

    def test_a_part_is_made_anew_and_what_is_around_it_stays(self) -> None:
        parts = {"a.h": {"numbers": ("x.py", lambda: ["#define A 1"])}}
        old = (
            "before\n\t/* Generated (numbers) by someone */\n\t#define A 0\n\t/* End of what is generated. */\nafter\n"
        )
        with mock.patch.object(make_contract, "PARTS", parts):
            new = make_contract.with_parts("a.h", old)
            self.assertEqual(make_contract.with_parts("a.h", new), new)
            with self.assertRaises(SystemExit):
                make_contract.with_parts("a.h", "no marks\n")
        self.assertIn("\t#define A 1\n\t/* End of what is generated. */\nafter\n", new)
        self.assertTrue(new.startswith("before\n\t/* Generated (numbers) by tools/make_contract.py from contract/x.py"))

    def test_numbers_count_up_from_the_last_that_is_given(self) -> None:
        lines = contract_kernel.PUBLIC.enumeration("e", "E_", [Number("a", 4), Number("b")], count="E_COUNT")
        self.assertEqual(lines[1:4], ["\tE_A = 4,", "\tE_B = 5,", "\tE_COUNT = 2,"])


if __name__ == "__main__":
    unittest.main()
