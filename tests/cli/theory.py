"""The numbers behind the paper's statements, as a user reads them."""
from harness import Case, main


class Theory(Case):
    def test_every_number_is_as_expected(self):
        text = self.phasor("theory")
        self.assertRegex(text, r"(?m)^  first wrong sign, increment in bf16, sum in f32 +1624  expected 1624 +ok$")
        self.assertIn("equation 8 as printed lacks the conjugate", text)
        self.assertNotIn("WRONG", text)
        self.assertEqual(text.splitlines()[-1], f"{text.count('  ok')} numbers, {text.count('  ok')} as expected")
        self.assertIn("leakage.svg", self.phasor("theory", "--out", "."))
        for name in ["temperatures.svg", "leakage.svg"]:
            with open(self.path(name)) as file:
                self.assertIn("<svg xmlns=", file.read())
        self.assertIn("unknown", self.phasor("theory", "--nothing", code=2))


if __name__ == "__main__":
    main()
