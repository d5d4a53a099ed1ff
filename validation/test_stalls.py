#!/usr/bin/env python3
"""Stalls of instructions, predicted and sampled."""
import unittest

import stalls

SAMPLES = ['==PROF== Connected\n', '"Kernel Name","k",\n', '"Address","Source","Instructions Executed","stall_selected","stall_barrier","stall_wait"\n',
           '"0x100","      LDC R1, c[0x0][0x28]","10","5","0","0"\n', '"0x110","@P0   BRA 0x100","0","0","0","0"\n',
           '"0x120","      BAR.SYNC 0x0","10","5","0","5"\n', '"0x130","@!P0  LDS R2, [R3]","10","5","20","0"\n']
RESULT = {"cases": [{"id": "a", "launch": 0, "instructions": [
    {"pc": 0, "sass": "LDC R1, c[0x0][0x28]", "executed": 20, "warp_cycles": {"selected": 20}},
    {"pc": 32, "sass": "BAR.SYNC 0x0", "executed": 20, "warp_cycles": {"selected": 20, "wait": 20}},
    {"pc": 48, "sass": "@!P0 LDS R2, [R3]", "executed": 20, "warp_cycles": {"selected": 20, "barrier": 240}}]}]}


class Stalls(unittest.TestCase):
    def test_cycles_each_time(self):
        card = stalls.sampled(SAMPLES)
        self.assertEqual(card[0x30][2]["barrier"], 40)  # 30 instructions were seen 15 times
        text = stalls.compare(stalls.predicted(RESULT, None, None), card, 8)
        lines = text.splitlines()
        self.assertIn("LDS R2", lines[0])
        self.assertIn("barrier 12.0 | barrier 4.0", lines[0])
        self.assertEqual(len([line for line in lines if "LDC" in line]), 0)
        self.assertIn("1.333", [line for line in lines if line.startswith("barrier")][0])

    def test_instructions_of_an_opcode_are_summed(self):
        card = stalls.sampled(SAMPLES + ['"0x140","      BAR.ARV 0x0","30","5","0","0"\n'])
        model = stalls.predicted(RESULT, None, None) | {64: ("BAR.ARV 0x0", 60, {"selected": 60, "wait": 300})}
        lines = stalls.compare(model, card, 3, opcodes=True).splitlines()
        self.assertIn("LDS", lines[0])  # most of the time
        self.assertIn("BAR", lines[1])
        self.assertIn("wait 4.0 | -", lines[1])  # 320 cycles of 80, here, and 15 of 40

    def test_refuses_what_does_not_belong_together(self):
        with self.assertRaisesRegex(stalls.InputError, "no table"):
            stalls.sampled(["==PROF== nothing\n"])
        with self.assertRaisesRegex(stalls.InputError, "choose one"):
            stalls.predicted(RESULT, "b", None)
        card = stalls.sampled([line.replace("LDS R2", "LDG R2") for line in SAMPLES])
        with self.assertRaisesRegex(stalls.InputError, "another kernel"):
            stalls.compare(stalls.predicted(RESULT, None, None), card, 8)


if __name__ == "__main__":
    unittest.main()
