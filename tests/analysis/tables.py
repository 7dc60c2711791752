"""Tables of whole folders as a user gets them: read by pandas as they are, in every format with the same digits."""
import csv
import io
import json
import os
import subprocess
import tempfile
import unittest

import pandas

PHASOR = os.environ["PHASOR"]


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="phasor_tables_")
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def synthetic(self, *sizes):
        subprocess.run([os.environ["PHASOR_SYNTHETIC"], self.folder, *map(str, sizes)], check=True)

    def table(self, *arguments, code=0, **environment):
        done = subprocess.run([PHASOR, "table", *arguments], capture_output=True, text=True, env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr


class Readers(Case):
    def test_the_recipe_of_the_docs(self):
        self.synthetic(3, 2, 2, 4, 5)
        self.table(self.folder)
        page = os.path.join(os.path.dirname(__file__), "../../analysis/tables.md")
        with open(page) as file:
            recipe = file.read().split("```python\n")[1].split("```")[0]
        self.assertLessEqual(len(recipe.strip().splitlines()), 10)
        names = {}
        exec(recipe.replace("results/data/parity_small", self.folder), names)
        table, trials = names["table"], names["trials"]
        self.assertEqual(len(table), 3 * 2 * 4)
        self.assertEqual(len(trials), 3 * 2 * 2 * 4)
        # The mean of the table, from the records alone.
        row = table[(table.variant == "V1") & (table.task == "T0") & (table.slice == 32)].iloc[0]
        cell = trials[trials.id.isin([f"trial-{1 * 16 + 0 * 8 + rate * 4 + seed}" for rate in range(2) for seed in range(4)])]
        chosen = cell[abs(cell.lr - row["optimizer.lr"]) < 1e-12]
        self.assertEqual(len(chosen), 4)
        self.assertAlmostEqual(row["mean"], chosen.value.mean(), delta=5e-5)

    def test_numbers_are_numbers(self):
        self.synthetic(2, 1, 2, 3, 2)
        os.remove(os.path.join(self.folder, "trial-6.h5"))  # of the second row: no rate of it is whole but the other
        os.remove(os.path.join(self.folder, "trial-9.h5"))
        self.table(self.folder, "--require-complete", code=3)
        table = pandas.read_csv(os.path.join(self.folder, "table.long.csv"))
        for column in ["n", "mean", "sd", "low", "high", "solved", "diff", "p", "p_holm", "step_ms", "trials", "decode_ms", "parameters_ratio"]:
            self.assertTrue(pandas.api.types.is_numeric_dtype(table[column]), column)
        self.assertTrue(table[table.variant == "V1"]["mean"].isna().all())
        self.assertTrue(table[table.variant == "V0"]["mean"].notna().all())
        found = json.loads(self.table(self.folder, "--format", "json"))
        self.assertIsNone(found["lines"][-1]["mean"])
        self.assertEqual(found["lines"][0]["n"], 3)

    def test_every_format_has_the_same_digits(self):
        self.synthetic(3, 2, 2, 8, 2)
        lines = list(csv.DictReader(io.StringIO(self.table(self.folder, "--format", "csv"))))
        found = json.loads(self.table(self.folder, "--format", "json"), parse_float=str, parse_int=str)["lines"]
        self.assertEqual(len(found), len(lines))
        for one, other in zip(lines, found):
            for head, field in one.items():
                self.assertEqual(other[head], None if field in ("", "NA") and other[head] is None else field, head)
        shown = {format: self.table(self.folder, "--format", format) for format in ["markdown", "latex", "terminal"]}
        for line in lines:
            if line["slice"] != "32":
                continue
            self.assertIn(f"{line['mean']} ± {line['sd']}", shown["markdown"])
            self.assertIn(f"{line['mean']} $\\pm$ {line['sd']}", shown["latex"])
            self.assertIn(f"{line['mean'][1:]} +- {line['sd'][1:]}", shown["terminal"])
        self.assertIn("\\toprule", shown["latex"])
        self.assertIn("\\textbf{", shown["latex"])

    def test_the_locale_changes_nothing(self):
        self.synthetic(2, 1, 2, 3, 2)
        self.assertEqual(self.table(self.folder, LC_ALL="de_DE.UTF-8"), self.table(self.folder, LC_ALL="C"))


class Published(Case):
    def test_the_tables_of_the_paper(self):
        rows = {"table1": 6, "table2": 5, "table3": 12}
        for name, count in rows.items():
            lines = list(csv.DictReader(io.StringIO(self.table("--reference", name, "--format", "csv"))))
            self.assertEqual(len(lines), count)
            off = [f"{line['model']} {line['encoding']}" for line in lines if line.get("average_adds_up") == "no"]
            self.assertEqual(off, ["FoX 370M NoPE", "FoX 370M RoPE", "FoX 370M Selective RoPE"] if name == "table3" else [])
        text = self.table("--reference", "table3")
        self.assertIn("FoX 370M / NoPE: average is printed as 45.3, the mean of its columns is 46.18", text)
        self.assertIn("FoX 370M / RoPE: average is printed as 45.1, the mean of its columns is 45.93", text)
        self.assertIn("FoX 370M / Selective RoPE: average is printed as 46.1, the mean of its columns is 46.97", text)
        self.assertIn("12 recomputed, 3 do not add up", text)
        self.assertIn("6 recomputed, 0 do not add up", self.table("--reference", "mad_table1"))
        for format in ["markdown", "latex", "json"]:
            self.assertIn("46.97", self.table("--reference", "table3", "--format", format))
        self.assertIn("no published table is called \"table4\", expected one of table1", self.table("--reference", "table4", code=2))

    def renamed(self, name, rows, columns):
        """The synthetic sweep with the labels of one of ours."""
        self.synthetic(len(rows), len(columns), 1, 3, 2)
        path = os.path.join(self.folder, "sweep.json")
        with open(path) as file:
            manifest = json.load(file)
        manifest["name"] = name
        manifest["axes"][0]["labels"], manifest["axes"][1]["labels"] = rows, columns
        manifest["table"]["baseline"] = rows[0]
        with open(path, "w") as file:
            json.dump(manifest, file)

    def test_ours_beside_the_paper(self):
        self.renamed("mad_table1_recall", ["NoPE", "Selective RoPE + gate"], ["stated", "clean"])
        ours = {(line["variant"], line["task"]): line for line in csv.DictReader(io.StringIO(self.table(self.folder, "--format", "csv")))
                if line["slice"] == "32"}
        lines = list(csv.DictReader(io.StringIO(self.table(self.folder, "--compare", "paper", "--format", "csv"))))
        self.assertEqual([(line["variant"], line["published"]) for line in lines],
                         [("NoPE", "87.3"), ("NoPE", "87.3"), ("Selective RoPE + gate", "96.6"), ("Selective RoPE + gate", "96.6")])
        for line in lines:
            mean = 100.0 * float(ours[line["variant"], line["task"]]["mean"])
            self.assertAlmostEqual(float(line["ours"]), mean, delta=0.006)
            self.assertAlmostEqual(float(line["difference"]), float(line["ours"]) - float(line["published"]), delta=1.5e-4)

    def test_models_are_columns_of_ours(self):
        self.renamed("language_modeling_table3", ["NoPE", "Selective"], ["GLA", "Gated DeltaNet", "FoX"])
        lines = list(csv.DictReader(io.StringIO(self.table(self.folder, "--compare", "paper", "--format", "csv"))))
        self.assertEqual([line["published_row"] for line in lines],
                         ["GLA 370M / NoPE", "Gated DeltaNet 400M / NoPE", "FoX 370M / NoPE", "GLA 370M / Selective RoPE",
                          "Gated DeltaNet 400M / stable Selective RoPE", "FoX 370M / Selective RoPE"])
        self.assertEqual([line["published"] for line in lines], ["25.72", "25.82", "25.52", "25.98", "26.13", "33.87"])
        text = self.table(self.folder, "--compare", "paper")
        self.assertIn("differences between rows compare, levels do not", text)
        self.assertIn("FoX 370M / NoPE: average is printed as 45.3", text)

    def test_what_does_not_correspond_is_said(self):
        self.synthetic(2, 1, 1, 2, 2)
        self.assertIn("no published table says that synthetic redoes it", self.table(self.folder, "--compare", "paper", code=2))
        self.assertIn("no row and column of synthetic is called as in mad_table1", self.table(self.folder, "--compare", "table1", code=2))
        self.assertIn("expected alone", self.table(self.folder, "--reference", "table1", code=2))
        self.assertIn("expected one of them", self.table(code=2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
