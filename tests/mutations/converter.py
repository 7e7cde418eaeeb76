"""Faults in the converter that would leave a wrong number in a conversion unseen."""

from tests.mutations import at, of

CONVERTER = [
    *of(
        "migrate/checkpoint/partitions.py",
        at("migrate/test_rows"),
        (
            "slice((part - first) % parts, count, parts)",
            "slice((first - part) % parts, count, parts)",
        ),
    ),
    *of(
        "migrate/checkpoint/partitions.py",
        at("migrate/test_bundle", "test_uneven_partitions_cannot_be_interleaved"),
        ("    if blocks != even:", "    if len(blocks) != len(even):"),
    ),
    *of(
        "migrate/checkpoint/rows.py",
        at("migrate/test_rows"),
        ("self._turns = places.T.reshape(-1)", "self._turns = places.reshape(-1)"),
    ),
    *of(
        "migrate/checkpoint/shards.py",
        at("migrate/test_bundle", "test_what_a_range_cannot_check_verify_does"),
        ("if self.checksums and actual != expected:", "if False:"),
    ),
    *of(
        "migrate/checkpoint/pieces.py",
        at("foreign/test_checkpoints"),
        ("if any(_overlap(other, piece) for other in begun):", "if False:"),
    ),
    *of(
        "migrate/stream/writing.py",
        at(
            "migrate/test_convert",
            "test_chunks_are_as_small_as_promised",
            "test_memory_stays_small_whatever_the_size_of_a_table",
        ),
        ("region.offset + start * item.row_bytes", "region.offset"),
    ),
    *of(
        "migrate/manifest/transforms.py",
        at("migrate/test_transforms"),
        ("(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16", "bits >> 16"),
    ),
    *of(
        "migrate/planning/steps.py",
        at("migrate/test_optimizers", "test_the_step_of_adam_is_that_of_its_bias_correction"),
        ("math.log(power) / math.log(base) - 1", "math.log(power) / math.log(base)"),
    ),
    *of(
        "migrate/ids/hashing.py",
        at(
            "migrate/test_ids",
            "test_any_ids_in_any_pieces_find_their_rows",
            "test_many_ids_are_found_within_the_probes_that_are_reported",
        ),
        ("home += (block - block // buckets * buckets) * size", "home += 0"),
    ),
    *of(
        "migrate/ids/merging.py",
        at("migrate/test_ids", "test_the_newest_version_of_an_id_wins"),
        (
            "numpy.lexsort((versions, batch.ids[places]))",
            "numpy.lexsort((-versions, batch.ids[places]))",
        ),
    ),
    *of(
        "migrate/ids/merging.py",
        at(
            "migrate/test_id_partitions",
            "test_state_of_a_row_that_lost_is_not_given_to_the_one_that_won",
        ),
        ("    again |= contested[at]\n", ""),
    ),
    *of(
        "migrate/hash_tables/whole_tables.py",
        at("migrate/test_tables", "test_of_ids_that_lack_a_slot_a_whole_table_has_its_first_value"),
        ("there[there] = own[places[there]] == ids[there]", "pass"),
    ),
    *of(
        "migrate/hash_tables/table_slots.py",
        at(
            "migrate/test_optimizer_records",
            "test_a_row_without_state_begins_where_tensorflow_begins_it",
        ),
        ("0.0 if slot is None else slot.initial", "0.0"),
    ),
    *of(
        "migrate/optimizers/adagrad.py",
        at("migrate/test_optimizer_records"),
        ("initial=0.1", "initial=0.0"),
    ),
    *of(
        "migrate/optimizers/adagrad.py",
        at("migrate/test_optimizer_records", "test_adagrads_counterpart_adds_no_epsilon_either"),
        ('always={"eps": 0.0}', "always={}"),
    ),
    *of(
        "migrate/optimizers/adam.py",
        at("migrate/test_optimizers", "test_the_step_of_adam_is_that_of_its_bias_correction"),
        (
            'StepCount(decay="beta2", scalar="beta2_power")',
            'StepCount(decay="beta1", scalar="beta1_power")',
        ),
    ),
    *of(
        "migrate/torchrec/optimizers/adaptive.py",
        at("migrate/test_optimizers", "test_three_more_steps_are_those_of_tensorflow"),
        ("(1 - power2) ** 0.5 / (1 - power1)", "(1 - power2) / (1 - power1)"),
    ),
    *of(
        "migrate/torchrec/optimizers/adaptive.py",
        at(
            "migrate/test_optimizers",
            "test_rows_that_tensorflow_never_trained_take_its_first_step",
            "test_three_more_steps_are_those_of_tensorflow",
        ),
        (
            'weight.addcdiv_(m, root(v).add_(group["eps"]), value=-alpha)',
            'weight.addcdiv_(m, (v + group["eps"]).sqrt(), value=-alpha)',
        ),
    ),
    *of(
        "migrate/torchrec/optimizers/adaptive.py",
        at("migrate/test_optimizers", "test_three_more_steps_are_those_of_tensorflow"),
        ('(s + group["eps"]).rsqrt()', '(s.sqrt() + group["eps"]).reciprocal()'),
    ),
    *of(
        "migrate/torchrec/optimizers/ftrl.py",
        at("migrate/test_rows_together"),
        ('after / lr + 2 * group["l2"]', 'after / lr + group["l2"]'),
    ),
    *of(
        "migrate/torchrec/optimizers/row_optimizer.py",
        at(
            "migrate/test_rows_together",
            "test_repeated_rows_of_a_table_of_doubles_are_summed_before_they_are_squared",
        ),
        ("        grad = grad.coalesce()\n", ""),
    ),
    *of(
        "migrate/torchrec/optimizers/row_optimizer.py",
        at("model/training/test_parity", "test_the_steps_of_each_optimizer_are_tensorflows"),
        ('(weight.abs() - rate * group["l1"])', '(weight.abs() - group["l1"])'),
    ),
    *of(
        "migrate/verification/shares.py",
        at("migrate/test_verify", "test_every_row_that_differs_is_counted"),
        (
            "result.differing_rows += int(different.sum())",
            "result.differing_rows += int(different.any())",
        ),
    ),
    *of(
        "migrate/verification/shares.py",
        at("migrate/test_verify", "test_one_flipped_bit_is_found_and_its_row_is_named"),
        (
            "different = (stored != wanted).any(axis=1)",
            "different = (stored != wanted).all(axis=1)",
        ),
    ),
    *of(
        "migrate/verification/accounts.py",
        at("migration/test_lost", "test_what_is_lost_is_found_by_verify_and_by_its_steps"),
        ("if name not in written and name not in manifest.dropped:", "if False:"),
    ),
    *of(
        "migrate/to_tensorflow/hash_table.py",
        at(
            "back/test_hash_tables", "test_ids_that_came_and_went_while_it_trained_are_in_the_table"
        ),
        ("ids[row_of[known]] = raw[known]", "ids[: known.sum()] = raw[known]"),
    ),
    *of(
        "migrate/runtime/batch_norm.py",
        at("model/test_batch_norm"),
        ("if self.unbiased and count > 1 else variance", "if count > 1 else variance"),
        ("torch.rsqrt(variance + self.eps)", "torch.rsqrt(variance) + self.eps"),
        ("channels = self.axis % x.dim()", "channels = x.dim() - 1"),
    ),
    *of(
        "migrate/runtime/embeddings.py",
        at("model/runtime/test_bags"),
        ("self.weights.square().unsqueeze(1)).sqrt()", "self.weights.square().unsqueeze(1))"),
        (
            "return self._sums(self.weights.unsqueeze(1))",
            "return self.lengths().clamp(min=1).float().unsqueeze(1)",
        ),
    ),
    *of(
        "migrate/runtime/numeric/segments.py",
        at("model/ops/test_structure", "test_segments_in_any_order"),
        (
            '_unsorted(x, segments, count, "amax", info(x.dtype).min)',
            '_unsorted(x, segments, count, "amax", 0)',
        ),
        ("torch.where(places < 0, count, ", "torch.where(places < 0, 0, "),
    ),
    *of(
        "migrate/runtime/numeric/slicing.py",
        at(
            "model/ops/test_structure",
            "test_a_backward_slice_behind_an_ellipsis_is_of_its_own_axis",
        ),
        ("axis += x.ndim - given", "axis += 1"),
    ),
    *of(
        "migrate/runtime/numeric/convolution.py",
        at("model/ops/test_cases") + " -k Conv2D",
        ("return total // 2, total - total // 2", "return total - total // 2, total // 2"),
        ("count = -(-size // stride)", "count = size // stride"),
    ),
    *of(
        "migrate/runtime/numeric/gathering.py",
        at("model/ops/test_structure", "test_places_on_the_first_axes_gathered_and_scattered"),
        ("places * size + place", "places + place"),
    ),
    *of(
        "migrate/runtime/buckets.py",
        at("model/runtime/test_buckets"),
        ("out_int32=True, right=True", "out_int32=True"),
    ),
    *of(
        "migrate/behaviour/difference.py",
        at("behaviour/test_rows"),
        ("np.where(np.isnan(distance), np.inf, distance)", "np.nan_to_num(distance)"),
    ),
    *of(
        "migrate/behaviour/largest.py",
        at("behaviour/test_rows"),
        ("row = int(batch.numbers[index[0]]) + 1", "row = int(index[0]) + 1"),
        ("value[: batch.rows] if value.shape[:1]", "value if value.shape[:1]"),
    ),
    *of(
        "migrate/data/position.py",
        at("data/test_position"),
        ("return Share(last - first, self._rest)", "return Share(self._size, self._rest)"),
        ("rank * share + taken, (rank + 1) * share", "rank * share, (rank + 1) * share"),
        (
            "number * self._ranks + rank if self._in_order",
            "rank * self._ranks + number if self._in_order",
        ),
    ),
    *of(
        "migrate/training/metrics.py",
        at("training/test_metrics"),
        ("rows[1, k] * (2 * negatives + rows[0, k])", "rows[1, k] * 2 * negatives"),
    ),
    *of(
        "migrate/scoring/scores.py",
        at(
            "scoring/test_command",
            "test_of_an_output_of_several_dimensions_the_columns_count_row_major",
        ),
        (
            "scores = output.reshape(rows)[: batch.table.num_rows]",
            "scores = output.reshape(rows)[-batch.table.num_rows :]",
        ),
    ),
]
