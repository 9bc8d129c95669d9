# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the program's commands as keywords: --layers-per-stage 3,2 is layers_per_stage=[3, 2].

Written by `pipewright --generate python`; a test compares it with what that prints.
"""

from typing import Any, Dict, Literal, Sequence, TypedDict, Union

Value = Union[str, int, float, Sequence[Any]]  # a time is a text with a unit: "12ms"


class New(TypedDict, total=False):
    """Of `pipewright new`."""

    sharding: Value
    framework: Literal["megatron", "torchtitan", "deepspeed", "none"]
    precision: Literal["fp32", "bf16", "fp8", "fp8-parameters", "nvfp4", "nvfp4-parameters"]
    costs_from: Value
    costs_of: Value
    busy_machine: bool
    uneven: Literal["devices", "layers"]
    scale: Value
    force: bool
    devices: int
    microbatches: int
    replicas: int
    zero: Value
    reshard: Value
    prefetch: Value
    reduce: Literal["last", "each"]
    shard_optimizer: bool
    chunks: int
    group: int
    pieces: int
    memory_limit: Value
    forward: Value
    input_grad: Value
    weight_grad: Value
    transfer: Value
    communication: Literal["overlapped", "one-stream", "blocking"]
    per_chunk: bool
    overlap_factor: float
    saved: Value
    saved_for_weight_grad: Value
    model: Value
    sequence: int
    microbatch_size: int
    layers_per_stage: Value
    tensor_parallel: int
    sequence_parallel: bool
    context_parallel: int
    expert_parallel: int
    folded_experts: bool
    node_dispatch: bool
    data_parallel: int
    overlap_exchanges: Value
    expert_spread: Value
    recompute: Value
    offload: Value
    device: Value
    cluster: Value
    efficiency: Value
    half_rate_width: int
    nodes: int
    devices_per_node: int
    cards_per_node: int
    nodes_per_switch: int
    oversubscription: float
    host_link: Value
    accumulate: Value
    optimizer: Literal["sgd", "adam", "adamw", "rmsprop"]
    prediction_steps: Literal["paper", "exact", "code"]
    rounding: Literal["half-even", "half-up", "half-down", "floor", "ceiling"]
    spectrain: Value
    vertical_sync: bool
    workers: int
    layout: Literal["pipeline", "workers", "single", "triangle", "sharded"]
    name: Value


class Predict(TypedDict, total=False):
    """Of `pipewright predict`."""

    sharding: Value
    framework: Literal["megatron", "torchtitan", "deepspeed", "none"]
    precision: Literal["fp32", "bf16", "fp8", "fp8-parameters", "nvfp4", "nvfp4-parameters"]
    costs_from: Value
    costs_of: Value
    busy_machine: bool
    uneven: Literal["devices", "layers"]
    scale: Value
    spread: Value
    device_spread: Value
    samples: Value
    by: Value
    seed: int
    for_: Literal["host", "mpi", "cuda"]
    families: bool
    devices: int
    microbatches: int
    replicas: int
    zero: Value
    reshard: Value
    prefetch: Value
    reduce: Literal["last", "each"]
    shard_optimizer: bool
    chunks: int
    group: int
    pieces: int
    memory_limit: Value
    forward: Value
    input_grad: Value
    weight_grad: Value
    transfer: Value
    communication: Literal["overlapped", "one-stream", "blocking"]
    per_chunk: bool
    overlap_factor: float
    saved: Value
    saved_for_weight_grad: Value
    model: Value
    sequence: int
    microbatch_size: int
    layers_per_stage: Value
    tensor_parallel: int
    sequence_parallel: bool
    context_parallel: int
    expert_parallel: int
    folded_experts: bool
    node_dispatch: bool
    data_parallel: int
    overlap_exchanges: Value
    expert_spread: Value
    recompute: Value
    offload: Value
    device: Value
    cluster: Value
    efficiency: Value
    half_rate_width: int
    nodes: int
    devices_per_node: int
    cards_per_node: int
    nodes_per_switch: int
    oversubscription: float
    host_link: Value
    accumulate: Value
    optimizer: Literal["sgd", "adam", "adamw", "rmsprop"]
    prediction_steps: Literal["paper", "exact", "code"]
    rounding: Literal["half-even", "half-up", "half-down", "floor", "ceiling"]
    spectrain: Value
    vertical_sync: bool
    workers: int
    layout: Literal["pipeline", "workers", "single", "triangle", "sharded"]
    name: Value


class Check(TypedDict, total=False):
    """Of `pipewright check`."""

    for_: Literal["host", "mpi", "cuda", "torch"]
    maths: Literal["auto", "training", "timed"]
    graphs: bool
    python: Value
    device: Value
    seed: int


class Run(TypedDict, total=False):
    """Of `pipewright run`."""

    sharding: Value
    backend: Value
    device: Value
    steps: int
    record: Value
    force: bool
    maths: Value
    synthetic: bool
    time_scale: float
    memory_scale: float
    device_memory: Value
    inject: Value
    clock: Value
    data: Value
    scale: Value
    seed: int
    transport: Value
    deadline: Value
    no_gradient_check: bool
    dump: Value
    weights: Value
    save_weights: Value
    check_memory: bool
    link: Value
    cuda_libraries: Value
    attention: Value
    bf16: bool
    graphs: bool
    progress: Value
    module: Value
    ranks: int
    replicas: Value
    synthetic_stages: bool
    python: Value
    print_command: bool
    collect: Value


class Compare(TypedDict, total=False):
    """Of `pipewright compare`."""

    step: int
    from_: Value
    to: Value
    block_time: Literal["events", "kernels"]
    first_run: Value
    tolerance: Value
    dark: bool
    force: bool


class Explain(TypedDict, total=False):
    """Of `pipewright explain`."""

    design: Value
    step: int
    from_: Value
    to: Value
    what_if: Value
    order: Value
    kernels: Value


class Query(TypedDict, total=False):
    """Of `pipewright query`."""

    schema: bool
    limit: Value
    time_limit: Value
    memory_limit: Value


class Calibrate(TypedDict, total=False):
    """Of `pipewright calibrate`."""

    steps: Value
    block_time: Literal["events", "kernels"]
    keep_unmeasured: bool
    busy_machine: bool
    force: bool


class Render(TypedDict, total=False):
    """Of `pipewright render`."""

    trace: Value
    step: int
    title: Value
    width: Value
    font_size: Value
    lane_height: Value
    colours: Value
    measured: Value
    without: Value
    resolution: int
    duration: Value
    dark: bool
    force: bool


class Export(TypedDict, total=False):
    """Of `pipewright export`."""

    to: Value
    csv: Value
    trace: Value
    step: int
    from_: Value
    until: Value
    force: bool


class Import(TypedDict, total=False):
    """Of `pipewright import`."""

    from_: Value
    legacy_letters: bool
    transfers: Value
    name: Value
    size_limit: Value
    force: bool
    progress: Value


class Search(TypedDict, total=False):
    """Of `pipewright search`."""

    spread: Value
    device_spread: Value
    samples: Value
    by: Value
    memory_limit: Value
    time_limit: Value
    objective: Value
    seed: int
    threads: int
    rounds: int
    lock: Value
    pareto: bool
    partition: bool
    placement: Value
    backward: Value
    recompute: Value
    offload: Literal["auto", "none"]
    points: int
    costs_from: Value
    costs_of: Value
    busy_machine: bool
    uneven: Literal["devices", "layers"]
    force: bool
    progress: Value


class Plan(TypedDict, total=False):
    """Of `pipewright plan`."""

    spread: Value
    device_spread: Value
    samples: Value
    model: Value
    cluster: Value
    devices: int
    batch: Value
    sequence: int
    top: int
    memory_limit: Value
    families: Value
    pin: Value
    why: Value
    what_if: Value
    refine: Value
    framework: Literal["megatron", "torchtitan", "deepspeed", "none"]
    precision: Literal["fp32", "bf16", "fp8", "fp8-parameters", "nvfp4", "nvfp4-parameters"]
    node_dispatch: bool
    expert_spread: Value
    time_limit: Value
    threads: int
    seed: int
    resume: bool
    force: bool
    progress: Value


class Experiment(TypedDict, total=False):
    """Of `pipewright experiment`."""

    steps: int
    seeds: int
    data: Value
    backend: Literal["host", "torch"]
    module: Value
    python: Value
    learning_rate: float
    momentum: float
    optimizer: Literal["sgd", "adam", "adamw", "rmsprop"]
    curves: Literal["loss", "accuracy"]
    table: Value
    database: Value
    costs: bool
    toy: Value
    inputs: Value
    start: Value
    target: Value
    dampening: Value
    beta2: float
    epsilon: float
    force: bool
    progress: Value


class Shard(TypedDict, total=False):
    """Of `pipewright shard`."""

    ratios: Value
    stage: int
    sharding: Value
    time_limit: Value
    max_expansions: int
    rules: Value
    alternatives: int
    run: bool
    backend: Value
    link: Value
    cuda_libraries: Value
    steps: int
    calibrate: Value
    force: bool


class Devices(TypedDict, total=False):
    """Of `pipewright devices`."""

    measure: bool
    operations: bool
    backend: Value
    devices: Value
    python: Value
    progress: Value
    force: bool


class Profile(TypedDict, total=False):
    """Of `pipewright profile`."""

    torch: Value
    trace: Value
    layers: Value
    model: Value
    force: bool
    progress: Value
    microbatches: Value
    seconds: float
    device: Value
    python: Value
    seed: int


OF_COMMAND: Dict[str, Any] = {
    "new": New,
    "predict": Predict,
    "check": Check,
    "run": Run,
    "compare": Compare,
    "explain": Explain,
    "query": Query,
    "calibrate": Calibrate,
    "render": Render,
    "export": Export,
    "import": Import,
    "search": Search,
    "plan": Plan,
    "experiment": Experiment,
    "shard": Shard,
    "devices": Devices,
    "profile": Profile,
}
