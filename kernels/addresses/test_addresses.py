"""What is packed comes out again, and a difference is found and named."""
import os
import tempfile
import unittest

import addresses


def threads():
    load, store = (224, "r", 4, 0), (256, "w", 4, 1)
    yield 0, 0, [load + (0,), store + (0,)]
    yield 0, 1, [load + (12,), store + (12,)]
    yield 0, 2, [load + (24,), store + (24,)]
    yield 0, 5, [load + (60,)]
    yield 1, 0, []
    yield 1, 1, [store + (8,), load + (4,), load + (4,)]


class Packing(unittest.TestCase):
    def test_round_trip(self):
        self.assertEqual(list(addresses.decode(addresses.encode(threads()))), list(threads()))

    def test_what_repeats_is_short(self):
        lines = list(addresses.encode(threads()))
        self.assertEqual(lines[1:3], ["0 1:+12;+12", "0 2:="])

    def test_recorded_rows_are_put_in_order(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write("0,1,1,256,2,4,1,12\n0,0,0,224,1,4,0,0\n0,1,0,224,3,4,0,12\n")
            self.assertEqual(list(addresses.recorded(path)), [
                (0, 0, [(224, "r", 4, 0, 0)]), (0, 1, [(224, "a", 4, 0, 12), (256, "w", 4, 1, 12)])])


class Comparing(unittest.TestCase):
    def test_alike(self):
        self.assertEqual(addresses.difference(threads(), threads()), (None, 10))

    def test_an_address_is_off(self):
        other = [list(one) for one in threads()]
        other[1][2] = [other[1][2][0], (256, "w", 4, 1, 16)]
        wrong, count = addresses.difference(threads(), iter(map(tuple, other)))
        self.assertIn("thread 1, access 1: GPU 256 w 4 bytes buffer 1 + 12, emulator 256 w 4 bytes buffer 1 + 16", wrong)
        self.assertEqual(count, 2)

    def test_a_thread_is_missing(self):
        wrong, _ = addresses.difference(threads(), (one for one in threads() if one[1] != 5))
        self.assertIn("launch 0 thread 5", wrong)

    def test_an_access_is_missing(self):
        wrong, _ = addresses.difference(threads(), ((a, b, c[:1]) for a, b, c in threads()))
        self.assertIn("emulator nothing", wrong)


if __name__ == "__main__":
    unittest.main()
