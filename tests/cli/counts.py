"""Parameter counts by `phasor describe`, of shipped experiments and of the published sizes, which must not be allocated."""
import json
import os
import resource

from harness import ROOT, Case, main

MODELS = os.path.join(ROOT, "experiments/mqar/zoology_figure2.json")  # a vocabulary is all that is needed of the task
LANGUAGE = ["task.vocabulary=32000", "model.layers=24", "model.pattern=a", 'model.other_backbone={"name": "none"}',
            'model.other_encoding={"name": "none"}', "model.tie_head=false", "model.norm=rms",
            'model.mlp={"kind": "swiglu"}']
FULL_RANK = '{"name": "selective_rope", "projection": {"kind": "full_rank", "weight_norm": true}, "gate": {"kind": "standard"}}'


class Counts(Case):
    def total(self, file, settings=()):
        arguments = [part for setting in settings for part in ("--set", setting)]
        return json.loads(self.phasor("describe", file, "--json", *arguments))["parameters"]["total"]

    def language(self, width, backbone, encoding='{"name": "nope"}'):
        return self.total(MODELS, LANGUAGE + [f"model.dim={width}", "model.backbone=" + json.dumps(backbone), "model.encoding=" + encoding])

    def test_shipped_experiments(self):
        for file, count in [("copying/paper.json", 14_783_104 + 132_224), ("state_tracking/s2_gla.json", 1_942_304 + 19_408)]:
            self.assertEqual(self.total(os.path.join(ROOT, "experiments", file)), count, file)

    def test_published_sizes(self):
        gla = {"name": "gla", "heads": 4, "short_conv": 4}
        delta = {"name": "gated_deltanet", "heads": 8}
        attention = {"name": "transformer", "heads": 16}
        self.assertEqual(self.language(1024, gla), 374_672_384)
        self.assertEqual(self.language(1024, gla, FULL_RANK), 374_672_384 + 1_697_472)
        self.assertEqual(self.language(1024, delta), 399_724_928)
        self.assertEqual(self.language(1024, delta, FULL_RANK), 399_724_928 + 1_820_544)
        self.assertEqual(self.language(1024, attention), 373_867_520)
        self.assertEqual(self.language(2048, gla), 1_365_907_456)
        # The largest child so far: 1.3 billion parameters would be 5 GB and more with gradients.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 500_000, "kB")


if __name__ == "__main__":
    main()
