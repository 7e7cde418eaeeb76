"""Faults in the judge that would turn a verdict, or a figure beside it, unseen."""

from tests.mutations import at, of

JUDGE = [
    *of(
        "parity/stats/roc.py",
        at("parity/test_auc"),
        ('for side in ("left", "right"))', 'for side in ("left", "left"))'),
        ("(1 - _middle(self.positives))[self.level]", "_middle(self.positives)[self.level]"),
    ),
    *of(
        "parity/stats/sorting.py",
        at("parity/test_auc"),
        ("(scores + scores.dtype.type(0)).view", "scores.copy().view"),
        ("entries[2 * place + (bits == values[place])]", "entries[2 * place]"),
    ),
    *of(
        "parity/stats/delong.py",
        at(
            "parity/test_comparison",
            "test_weighted_error_is_that_of_the_jackknife",
            "test_variance_is_delongs_by_definition",
        ),
        (
            "squares * rows / (rows - 1) for squares, rows in classes",
            "squares for squares, _ in classes",
        ),
        ("        psi *= weights\n", ""),
    ),
    *of(
        "parity/stats/delong.py",
        at("parity/test_variance"),
        (
            "min(welch(sums.parts(), observations), sums.held.either - 1)",
            "welch(sums.parts(), observations)",
        ),
        ("total**2 / sum(part**2 / degrees", "total / sum(part / degrees"),
    ),
    *of(
        "parity/stats/clusters.py",
        at("parity/test_variance"),
        ("shared = 2 * self.across *", "shared = self.across *"),
        ("squares * count / (count - 1)", "squares"),
    ),
    *of(
        "parity/stats/equivalence.py",
        at("parity/test_equivalence", "test_the_interval_decides"),
        (
            "-margin < interval.low and interval.high < margin",
            "-margin <= interval.low and interval.high <= margin",
        ),
        ("interval.low > margin or interval.high < -margin", "interval.low > margin"),
    ),
    *of(
        "parity/stats/equivalence.py",
        at(
            "parity/test_rare_failures",
            "test_enough_rows_exclude_it_without_a_record",
            "test_the_allowance_alone_can_leave_it_open",
        ),
        ("inside and evidence.floor >= margin", "inside and evidence.floor > 2 * margin"),
        ("widened(vouched, evidence.allowance)", "vouched"),
    ),
    *of(
        "parity/stats/equivalence.py",
        at("parity/test_doubts", "test_two_useless_models_are_not_equivalent"),
        ("inside and evidence.flaw is not None", "False"),
    ),
    *of(
        "parity/stats/intervals.py",
        at("parity/test_rare_failures", "test_the_floor_is_three_over_n_times_the_reach"),
        ("ALPHA = (1 - CONFIDENCE) / 2", "ALPHA = 1 - CONFIDENCE"),
    ),
    *of(
        "parity/stats/intervals.py",
        at(
            "parity/test_comparison",
            "test_an_error_of_zero_is_not_certainty_when_the_models_rank_differently",
        ),
        ("unseen(observations) * (reach + abs(delta))", "unseen(observations) * reach"),
    ),
    *of(
        "parity/stats/intervals.py",
        at("parity/test_runs", "test_students_quantile_is_scipys"),
        ("(z**3 + z) / (4 * df)", "(z**3 + z) / (2 * df)"),
        ("4 * values[1::2].sum() + 2", "4 * values[1::2].sum() + 3"),
    ),
    *of(
        "parity/stats/rare_failures.py",
        at(
            "parity/test_rare_failures",
            "test_the_class_with_the_larger_floor_decides",
            "test_a_fault_can_take_a_row_from_either_end_to_the_other",
        ),
        ("worst = int(floors[1] >= floors[0])", "worst = int(floors[1] < floors[0])"),
        ("max(float(v.max()), 1 - float(v.min()))", "float(v.max())"),
    ),
    *of(
        "parity/stats/parts.py",
        at("parity/test_strata", "test_q_values_are_benjamini_hochbergs"),
        ("np.minimum.accumulate(ratios[::-1])[::-1]", "ratios"),
    ),
    *of(
        "parity/stats/strata.py",
        at("parity/test_strata", "test_mean_over_days_and_its_error"),
        ("for error in errors)) / len(errors)", "for error in errors) / len(errors))"),
    ),
    *of(
        "parity/stats/worst_rows.py",
        at("parity/test_strata", "test_rows_of_weight_zero_are_in_no_slice_and_no_worst_row"),
        ("else np.flatnonzero(rows.kept)", "else np.arange(len(share))"),
    ),
    *of(
        "parity/stats/repeats.py",
        at("parity/test_repeats", "test_a_zero_of_either_sign_is_one_score"),
        ("(scores.astype(np.float64) + 0.0).view", "scores.astype(np.float64).view"),
    ),
    *of(
        "parity/stats/tf1_auc.py",
        at("parity/test_metrics", "test_tf1_compat_auc_compares_single_precision"),
        (
            "np.searchsorted(thresholds(), scores.astype(np.float32))",
            "np.searchsorted(thresholds(), scores)",
        ),
    ),
    *of(
        "parity/stats/trend.py",
        at("parity/test_trend", "test_the_change_of_equal_errors_is_students_t_test"),
        ("count - 2) * len(differences)", "count - 2)"),
    ),
    *of(
        "parity/stats/calibration.py",
        at("parity/test_metrics"),
        ("squares * units / (units - 1)", "squares"),
    ),
    *of(
        "parity/stats/calibration.py",
        at("parity/test_metrics", "test_the_error_of_the_difference_in_pcoc_is_the_jackknifes"),
        ("(pulls - delta * labels) / total", "(pulls - delta) / total"),
    ),
    *of(
        "parity/stats/gauc.py",
        at("parity/test_metrics"),
        ("np.cumsum(of_runs[1]) - of_runs[1] / 2", "np.cumsum(of_runs[1]) - of_runs[1]"),
    ),
    *of(
        "parity/runs.py",
        at("parity/test_runs", "test_variance_is_seeds_plus_rows"),
        ("self.aucs.var(ddof=1)", "self.aucs.var()"),
        ("(variance / side.runs, freedom(side))", "(variance, freedom(side))"),
    ),
    *of(
        "parity/runs.py",
        at("parity/test_doubts", "test_one_run_that_guesses_is_seen_among_others"),
        ("key=lambda auc: abs(auc - 0.5)", "key=lambda auc: -abs(auc - 0.5)"),
    ),
    *of(
        "parity/verified.py",
        at("parity/test_rare_failures", "test_any_other_record_is_refused"),
        (' or counts["differing_rows"]', ""),
    ),
    *of(
        "parity/gates.py",
        at("parity/test_gates", "test_an_auc_across_the_one_required_is_not_decided"),
        ("elif interval.low < least:", "elif interval.high < least:"),
    ),
    *of(
        "parity/gates.py",
        at("parity/test_gates", "test_the_mean_of_the_days_is_required_with_them"),
        ("joint([*verdicts, *also])", "joint(verdicts)"),
    ),
    *of(
        "parity/gates.py",
        at("parity/test_gates", "test_days_are_required_like_slices"),
        (
            "part.verdict or Verdict.INCONCLUSIVE for part",
            "part.verdict or Verdict.EQUIVALENT for part",
        ),
    ),
    *of(
        "parity/gates.py",
        at("parity/test_gates", "test_the_difference_in_normalised_entropy_is_that_of_the_two"),
        ("loss.times(fit.ne / fit.logloss)", "loss"),
    ),
    *of(
        "parity/histogram/estimate.py",
        at(
            "parity/test_summary",
            "test_the_bound_holds_where_a_bin_hides_how_its_rows_are_ranked",
            "test_the_error_holds_where_a_bin_hides_how_far_positives_stand_from_all_negatives",
        ),
        ("shared / (2 * float(positives[-1])", "shared / (4 * float(positives[-1])"),
        ("share[::-1] / 2, span.start >> bits", "share / 2, span.start >> bits"),
    ),
    *of(
        "parity/histogram/loss_sums.py",
        at(
            "parity/test_summary",
            "test_the_error_of_the_difference_in_pcoc_is_that_of_rows_in_memory",
        ),
        ("squares += delta**2 * positive[SQUARES]", "squares += 0"),
    ),
    *of(
        "parity/histogram/counts.py",
        at("parity/test_beyond_memory", "test_days_and_slices", "test_groups"),
        ("int32)[local]", "int32)[np.sort(local)]"),
    ),
    *of(
        "parity/histogram/second_pass.py",
        at("parity/test_beyond_memory", "test_days_and_slices", "test_groups"),
        ("return Pulls(*(amount * rows.weights for amount in pulls))", "return pulls"),
    ),
    *of(
        "parity/io/join.py",
        at("parity/test_keys", "test_keys_of_both_signs_join_as_brute_force_does"),
        ("Match(rows, partner, len(baseline)", "Match(rows, rows, len(baseline)"),
    ),
]
