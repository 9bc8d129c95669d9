#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules as people have them (modules/): what a look finds in them, and that `run`, `experiment` and `profile` act on it.

    own_modules.py [PART…] PIPEWRIGHT

Run by an interpreter with PyTorch, which the ranks use too; exits 77 and says why when it has none. Two ranks each.
"""

import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = os.path.join(HERE, "modules")
PACKAGE = os.path.join(HERE, "..", "..", "executor", "torch")
sys.path.insert(0, PACKAGE)
PROGRAM = None

try:
    import torch
    import torch.distributed
    from torch.distributed.pipelining.schedules import REDUCE_GRAD  # noqa: F401
    assert torch.distributed.is_gloo_available()
except (ImportError, AssertionError) as error:
    print(f"skipped: {sys.executable} has no PyTorch 2.10 or later with gloo ({error})")
    sys.exit(77)

from pipewright import look, record, usermodule  # noqa: E402


def module(name):
    return os.path.join(MODULES, name + ".py") + ":build"


def plain_losses(name, steps):
    """Training without a pipeline: the module as it is, one optimizer over all its parameters."""
    user = usermodule.UserModule(module(name))
    layers = torch.nn.Sequential(*user.layers(1))
    optimizer = user.optimizer(list(layers.parameters()))
    losses = []
    for step in range(steps):
        inputs, targets = user.batch(step, 1)
        loss = user.loss()(layers(*inputs), targets)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


class WithProgram(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def program(self, *words, code=0, **environment):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder.name, capture_output=True, text=True, timeout=600,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        self.said = done.stderr
        return done.stdout

    def design(self, family, *words, microbatches=4):
        self.program("new", family, "--devices", "2", "--microbatches", str(microbatches), *(words or ("--forward", "1ms")), "-o",
                     family + ".json", "--force")
        return family + ".json"

    def run_torch(self, family, name, *words, steps=2, code=0, design=None, **environment):
        """The report of a run on two ranks, whose gradients are the whole module's."""
        out = self.program("run", design or self.design(family), "--backend", "torch", "--module", module(name), "--python",
                           sys.executable, "--steps", str(steps), "-o", "run.db", "--force", "--json", *words, code=code, **environment)
        if code != 0:
            return None
        report = json.loads(out)
        check = report["gradient_check"]
        self.assertNotIn("skipped", check)
        self.assertLessEqual(check["max_relative_error"], check["within"], check)
        return report

    def experiment(self, *families, name, steps, code=0, json_too=True, **environment):
        return self.program("experiment", *map(self.design, families), "--backend", "torch", "--module", module(name), "--python",
                            sys.executable, "--steps", str(steps), "--progress", "none", *(["--json"] if json_too else []),
                            code=code, **environment)


class Looks(unittest.TestCase):
    def found(self, name):
        os.environ["DROP"] = "0"
        job = {"module": module(name), "seed": 1, "device": "host"}
        return look.look(job, usermodule.UserModule(job["module"]), lambda at: None)

    def test_a_shared_parameter_is_named_with_its_layers(self):
        found = self.found("tied")
        self.assertEqual([shared.places for shared in found.shared], [[(0, "words.weight"), (3, "out.weight")]])
        self.assertIn("words.weight of layer 0 (Embedding), out.weight of layer 3 (Head)", found.lines()[0]["what"])

    def test_tuples_are_named_with_their_types(self):
        self.assertEqual(self.found("pairs").handed[1], ("tensor of float32", "tensor of bool"))
        self.assertEqual({number: len(types) for number, types in self.found("skips").handed.items()}, {0: 2, 1: 3, 2: 2, 3: 1})

    def test_frozen_parameters_are_counted_by_layer(self):
        found = self.found("adapters")
        self.assertEqual(found.frozen[1], (4 * (16 * 16 + 16), 4 * (16 * 16 + 16 + 2 * 2 * 16)))
        self.assertIn("layers 0, 3 train nothing", found.lines()[0]["what"])

    def test_backwards_that_cannot_be_split_are_named_with_the_reason(self):
        found = self.found("unsplittable")
        self.assertEqual(sorted(found.unsplittable), [1, 2])
        self.assertIn("use_reentrant=True", found.unsplittable[1])
        self.assertIn("gradient of bias", found.unsplittable[2])

    def test_layers_that_draw_random_numbers_are_named_and_the_numbers_stay_as_they_were(self):
        os.environ["DROP"] = "0.5"
        job = {"module": module("tied"), "seed": 1, "device": "host"}
        user = usermodule.UserModule(job["module"])
        layers = user.layers(1)
        inputs, targets = user.batch(0, 1)
        looker = look.Looker(torch.device("cpu"), inputs, targets, user.loss())
        before = torch.get_rng_state()
        self.assertEqual(list(looker.through(layers, len(layers))), [0, 1, 2, 3])
        self.assertEqual(looker.found.random, [0, 1, 2])
        self.assertTrue(torch.equal(torch.get_rng_state(), before))
        self.assertTrue(all(parameter.grad is None for layer in layers for parameter in layer.parameters()))

    def test_a_layer_that_fails_is_named(self):
        class Picky(torch.nn.Module):
            def forward(self, value, other):
                return value

        looker = look.Looker(torch.device("cpu"), (torch.ones(2, 3),), torch.ones(2, 3), lambda output, target: output.sum())
        with self.assertRaises(look.Refused) as refused:
            list(looker.through([torch.nn.Linear(3, 3), Picky()], 2))
        self.assertEqual(refused.exception.where, "layer 1 (Picky)")
        self.assertIn("every layer takes what the one before it returns", refused.exception.hint)

    def test_a_stage_cannot_end_with_what_is_no_tensor(self):
        looker = look.Looker(torch.device("cpu"), (torch.ones(2, 3),), torch.ones(2, 3), lambda output, target: output.sum())
        looker.found.names, looker.found.handed = ["A", "B"], {0: ("tensor of float32", "NoneType")}
        looker.found.refuse_ends([2])
        with self.assertRaises(look.Refused) as refused:
            looker.found.refuse_ends([1, 1])
        self.assertIn("returns a NoneType", refused.exception.what)


class Reports(unittest.TestCase):
    def test_numbers_that_json_has_no_word_for_are_texts(self):
        self.assertEqual(record.reportable({"loss": [math.nan, math.inf, -math.inf, 1.5]}), {"loss": ["nan", "inf", "-inf", 1.5]})


class Check(WithProgram):
    def test_check_says_what_a_module_holds_before_anything_runs(self):
        said = json.loads(self.program("check", module("tied"), "--for", "torch", "--python", sys.executable, "--json", DROP="0.1"))
        self.assertEqual(said["layers"], ["Embedding", "Block", "Block", "Head"])
        self.assertEqual([fact["kind"] for fact in said["found"]], ["shared", "random"])
        self.assertIn("layers 0 to 2 draw random numbers", said["found"][1]["what"])

    def test_check_of_a_design_says_what_pytorch_cannot_run(self):
        self.program("check", self.design("chimera"), "--for", "torch", code=1)
        self.assertIn("PyTorch's pipeline has one copy of the model", self.said)
        self.program("check", self.design("1f1b"), "--for", "torch")
        for words, said in (("--for host", "add --for torch"), ("--for torch --graphs", "--graphs"),
                            ("--for torch --maths timed", "--maths"),
                            (f"--for torch --device tpu --python {sys.executable}", "--device")):
            self.program("check", module("tied"), *words.split(), code=2)
            self.assertIn(said, self.said)


class Tuples(WithProgram):
    def test_layers_with_two_inputs_are_stages(self):
        self.assertEqual(len(self.run_torch("1f1b", "pairs")["loss"]), 2)
        self.assertIn("layers 0 to 2 hand on 2 values: tensor of float32, tensor of bool", self.said)

    def test_skips_in_a_tuple_go_through_a_split_backward_and_two_stages_of_one_rank(self):
        self.run_torch("zb-v", "skips")

    def test_tuples_go_through_weight_versions_too(self):
        report = self.run_torch("pipedream", "pairs", DROP="0.5")
        self.assertEqual(report["gradient_check"]["reference"], "sequential-lagged")
        runs = json.loads(self.experiment("1f1b", name="pairs", steps=2))["runs"]
        self.assertTrue(runs[1]["bit_equal_to_reference"])


class Shared(WithProgram):
    def test_a_run_sums_the_gradients_of_a_shared_parameter(self):
        """As plain training of the tied module does; also where both stages are on one rank, as in a V."""
        expected = plain_losses("tied", 3)
        for family in ("1f1b", "zb-v"):
            report = self.run_torch(family, "tied", steps=3, DROP="0")
            for got, want in zip(report["loss"], expected):
                self.assertAlmostEqual(got, want, delta=1e-5, msg=family)
        self.assertIn("stages that hold it sum their gradients", self.said)

    def test_an_experiment_sums_them_too_and_refuses_updates_amid_the_step(self):
        expected = plain_losses("tied", 4)
        runs = json.loads(self.experiment("1f1b", name="tied", steps=4, DROP="0"))["runs"]
        for run in runs:
            for got, want in zip(run["loss"], expected):
                self.assertAlmostEqual(got, want, delta=1e-5, msg=run["design"])
        self.assertTrue(runs[1]["bit_equal_to_reference"])
        self.experiment("1f1b", "pipedream", name="tied", steps=4, code=2)
        self.assertIn("stages hold one parameter (stage 0 0.words.weight, stage 1 1.out.weight)", self.said)
        self.run_torch("pipedream", "tied", code=2)
        self.assertIn("stages hold one parameter", self.said)

    def test_copies_that_differ_are_a_failed_check_that_names_them(self):
        from pipewright import check, shared

        tied = [shared.Tied({0: "0.words.weight", 1: "1.out.weight"})]
        same, other = torch.ones(2), torch.zeros(2)
        self.assertIsNone(check.copies_that_differ(tied, {0: {"0.words.weight": same}, 1: {"1.out.weight": same}}))
        self.assertEqual(check.copies_that_differ(tied, {0: {"0.words.weight": same}, 1: {"1.out.weight": other}}),
                         "stage 0 0.words.weight, stage 1 1.out.weight")

    def test_a_profile_records_it_and_designs_of_it_reduce(self):
        self.program("profile", "--torch", module("tied"), "--microbatches", "4", "--seconds", "0.01", "--python", sys.executable,
                     "-o", "tied.json", "--json")
        with open(os.path.join(self.folder.name, "tied.json"), encoding="utf-8") as file:
            head = json.load(file)["layer_table"][3]
        self.assertEqual((head["shared"], head["shared_with"]), ("3840B", "Embedding"))
        with open(os.path.join(self.folder.name, self.design("1f1b", "--model", "tied.json")), encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["dataflow"]["shared"]), 1)


class Frozen(WithProgram):
    def test_frozen_parameters_have_no_gradient_and_no_state_and_a_stage_after_them_keeps_its_weight_gradients(self):
        self.program("profile", "--torch", module("adapters"), "--microbatches", "4", "--seconds", "0.01", "--python",
                     sys.executable, "-o", "adapters.json", "--json")
        path = self.design("1f1b", "--model", "adapters.json", "--layers-per-stage", "2,2")
        with open(os.path.join(self.folder.name, path), encoding="utf-8") as file:
            stages = json.load(file)["costs"]["stages"]
        trained = 4 * 2 * 2 * 16  # of one layer's adapter
        self.assertEqual([stage["parameters"] for stage in stages], ["3904B", "4064B"])
        self.assertEqual([stage["gradients"] for stage in stages], [f"{trained}B"] * 2)
        # The first stage has frozen layers only, so the second one's input needs no gradient.
        design = self.design("zb-h1", "--model", "adapters.json", "--layers-per-stage", "1,3")
        report = self.run_torch(None, "adapters", design=design)
        self.assertTrue(report["gradient_check"]["bit_equal"], report["gradient_check"])


class Numbers(WithProgram):
    def test_a_loss_that_is_nan_is_recorded_and_said(self):
        report = self.run_torch("1f1b", "diverging", steps=3)
        self.assertEqual([loss is None for loss in report["loss"]], [False, True, True])
        self.assertIn("loss: warning: is NaN from step 2 on", self.said)

    def test_an_experiment_that_diverges_says_so_and_what_it_trained_with(self):
        def row(name, steps):
            """Optimizer, final loss, held back and accuracy of the design that updates once a step."""
            out = self.experiment("1f1b", name=name, steps=steps, json_too=False, DROP="0")
            return next(line.split(" flush ")[1].split()[:4] for line in out.splitlines() if " flush " in line)

        self.assertEqual(row("diverging", 10), ["sgd", "diverged", "–", "–"])
        found = row("tied", 2)
        self.assertEqual((found[0], found[2:]), ("adamw", ["–", "–"]))
        self.assertGreater(float(found[1]), 0)

    def test_a_nan_against_a_number_fails_the_gradient_check(self):
        from pipewright.compare import relative_error, same

        nan, one = torch.tensor([math.nan, 1.0]), torch.tensor([1.0, 1.0])
        self.assertEqual((relative_error(nan, nan), same(nan, nan)), (0.0, True))
        self.assertEqual((relative_error(nan, one), relative_error(one, nan)), (math.inf, math.inf))


class Random(WithProgram):
    def test_every_stage_and_microbatch_draws_its_own_and_the_check_draws_the_same(self):
        from pipewright.stages import Source

        source = Source({"module": module("tied"), "seed": 1, "stages": 2, "layers_per_stage": None,
                         "partition_of_module": False, "microbatches": 4})
        masks = []
        for rows, stage, microbatch in ((0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 0, 0)):
            source.draws(rows, stage, microbatch)
            masks.append(tuple((torch.rand(64) > 0.5).tolist()))
        self.assertEqual(len(set(masks[:4])), 4)
        self.assertEqual(masks[0], masks[4])
        self.run_torch("1f1b", "tied", DROP="0.5")


class Whole(WithProgram):
    def test_a_backward_that_cannot_be_split_runs_whole(self):
        self.run_torch("zb-h1", "unsplittable")
        self.assertIn("layer 2 (Biasing): its backward cannot be split", self.said)

    def test_it_is_measured_whole(self):
        report = json.loads(self.program("profile", "--torch", module("unsplittable"), "--microbatches", "4", "--seconds", "0.01",
                                         "--python", sys.executable, "-o", "model.json", "--json"))
        self.assertEqual(report["estimated"], ["input_grad", "weight_grad"])
        self.assertTrue(all(layer["backward_ns"] > 0 for layer in report["layers"]))
        self.assertIn("layer 1 (Checkpointed): its backward cannot be split", self.said)


class Launchers(WithProgram):
    def start(self, line, **environment):
        return subprocess.run(line, shell=True, cwd=self.folder.name, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **environment})

    def test_the_printed_command_is_quoted_and_a_wrong_number_of_ranks_is_said_on_standard_error(self):
        place = os.path.join(self.folder.name, "a folder; echo")
        os.mkdir(place)
        said = self.program("run", self.design("1f1b"), "--backend", "torch", "--module", module("diverging"), "--python",
                            sys.executable, "--steps", "1", "-o", os.path.join(place, "run.db"), "--print-command")
        torchrun, collect = said.splitlines()[0], said.splitlines()[-1]
        self.assertIn(os.path.join(place, "run.db.job.json"), shlex.split(torchrun))
        self.assertIn(os.path.join(place, "run.db"), shlex.split(collect))
        rank = sys.executable + " " + torchrun[torchrun.index("-m pipewright.run"):]
        line = torchrun[: torchrun.index("torchrun")] + rank
        done = self.start(line, RANK="0", WORLD_SIZE="3", LOCAL_RANK="0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("3 processes, and the design has 2 devices", done.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop())
    unittest.main()
