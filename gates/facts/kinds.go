package facts

// The kinds of details, one for each type of fact. Stored verdicts have them, so that a kind stays when its type is renamed.
const (
	DetailAgainstMark            = "against-mark"
	DetailAllPassed              = "all-passed"
	DetailApartFromBaseline      = "apart-from-baseline"
	DetailAsBefore               = "as-before"
	DetailBadElements            = "bad-elements"
	DetailBaselineFailedToo      = "baseline-failed-too"
	DetailBatchFaster            = "batch-faster"
	DetailBatchGainsMore         = "batch-gains-more"
	DetailBelowBest              = "below-best"
	DetailBelowFloor             = "below-floor"
	DetailBothWrong              = "both-wrong"
	DetailBlockLift              = "block-lift"
	DetailBringsDisturbance      = "brings-disturbance"
	DetailBuildFailed            = "build-failed"
	DetailBuilt                  = "built"
	DetailCapped                 = "capped"
	DetailCaseNotRun             = "case-not-run"
	DetailCasesNotRun            = "cases-not-run"
	DetailCasesPassed            = "cases-passed"
	DetailChoosesBySize          = "chooses-by-size"
	DetailClean                  = "clean"
	DetailClockMoved             = "clock-moved"
	DetailCoarseClock            = "coarse-clock"
	DetailCodeSizes              = "code-sizes"
	DetailControlOff             = "control-off"
	DetailDetectable             = "detectable"
	DetailDisturbs               = "disturbs"
	DetailDrifts                 = "drifts"
	DetailElementCount           = "element-count"
	DetailEndToEnd               = "end-to-end"
	DetailEnergyChanges          = "energy-changes"
	DetailErrorBound             = "error-bound"
	DetailExistingCases          = "existing-cases"
	DetailExistingFindings       = "existing-findings"
	DetailExistingTimed          = "existing-timed"
	DetailExplained              = "explained"
	DetailFailedInSegment        = "failed-in-segment"
	DetailFailedWhileTimed       = "failed-while-timed"
	DetailFasterWithState        = "faster-with-state"
	DetailFault                  = "fault"
	DetailFaulty                 = "faulty"
	DetailFaultyBaseline         = "faulty-baseline"
	DetailFewBlocks              = "few-blocks"
	DetailFewRounds              = "few-rounds"
	DetailFinding                = "finding"
	DetailGainAlone              = "gain-alone"
	DetailGainUnseen             = "gain-unseen"
	DetailGrown                  = "grown"
	DetailHiddenFindings         = "hidden-findings"
	DetailInputNotSanitized      = "input-not-sanitized"
	DetailKeepsState             = "keeps-state"
	DetailKindsApart             = "kinds-apart"
	DetailLacking                = "lacking"
	DetailLessPrecise            = "less-precise"
	DetailLostBy                 = "lost-by"
	DetailManifestRemoved        = "manifest-removed"
	DetailMeanAlone              = "mean-alone"
	DetailMergedCode             = "merged-code"
	DetailMetricMissed           = "metric-missed"
	DetailMetricsHold            = "metrics-hold"
	DetailMostlyDisturbed        = "mostly-disturbed"
	DetailNoBaseline             = "no-baseline"
	DetailNoBuild                = "no-build"
	DetailNoEnergy               = "no-energy"
	DetailNoMark                 = "no-mark"
	DetailNoProfile              = "no-profile"
	DetailNoResources            = "no-resources"
	DetailNoSanitizer            = "no-sanitizer"
	DetailNoShapeToMeasure       = "no-shape-to-measure"
	DetailNoShapes               = "no-shapes"
	DetailNoSuchShapes           = "no-such-shapes"
	DetailNoWeights              = "no-weights"
	DetailNoneMet                = "none-met"
	DetailNoneWorse              = "none-worse"
	DetailNotBitIdentical        = "not-bit-identical"
	DetailNotCounted             = "not-counted"
	DetailNotDeterministic       = "not-deterministic"
	DetailNotReached             = "not-reached"
	DetailNotRecorded            = "not-recorded"
	DetailNotSanitized           = "not-sanitized"
	DetailNotSearched            = "not-searched"
	DetailNotVerified            = "not-verified"
	DetailNothingCompared        = "nothing-compared"
	DetailNothingGained          = "nothing-gained"
	DetailNothingGainedOn        = "nothing-gained-on"
	DetailNothingTimed           = "nothing-timed"
	DetailNothingToMeasure       = "nothing-to-measure"
	DetailOfOutput               = "of-output"
	DetailOfSeed                 = "of-seed"
	DetailOfShape                = "of-shape"
	DetailOfVariant              = "of-variant"
	DetailOverBudget             = "over-budget"
	DetailOverLimit              = "over-limit"
	DetailPassesWithoutDisturbed = "passes-without-disturbed"
	DetailPrecisionKept          = "precision-kept"
	DetailPrecisionLost          = "precision-lost"
	DetailPreparesOnce           = "prepares-once"
	DetailProfileMissed          = "profile-missed"
	DetailProfileSkipped         = "profile-skipped"
	DetailProfileSkippedNote     = "profile-skipped-note"
	DetailQuote                  = "quote"
	DetailReplayNotTried         = "replay-not-tried"
	DetailReplayPasses           = "replay-passes"
	DetailReproducible           = "reproducible"
	DetailSecretCasesLacking     = "secret-cases-lacking"
	DetailSeries                 = "series"
	DetailShapeSpeed             = "shape-speed"
	DetailShapeTime              = "shape-time"
	DetailSettled                = "settled"
	DetailSlowKind               = "slow-kind"
	DetailSlowTail               = "slow-tail"
	DetailSpeeds                 = "speeds"
	DetailStateKept              = "state-kept"
	DetailStepAlone              = "step-alone"
	DetailStatusOnly             = "status-only"
	DetailSuspicious             = "suspicious"
	DetailTestFailed             = "test-failed"
	DetailTestPassed             = "test-passed"
	DetailTimes                  = "times"
	DetailTooFewAlone            = "too-few-alone"
	DetailTooNoisy               = "too-noisy"
	DetailToolFailed             = "tool-failed"
	DetailToolLacking            = "tool-lacking"
	DetailTwoGroups              = "two-groups"
	DetailUneven                 = "uneven"
	DetailUnfit                  = "unfit"
	DetailUnknownShape           = "unknown-shape"
	DetailUnreliable             = "unreliable"
	DetailWaits                  = "waits"
	DetailWeightsLack            = "weights-lack"
	DetailWithinBudget           = "within-budget"
	DetailWrongBaseline          = "wrong-baseline"
	DetailWrongCase              = "wrong-case"
	DetailWrongInSegment         = "wrong-in-segment"
	DetailWrongOutput            = "wrong-output"
	DetailWrongWhileTimed        = "wrong-while-timed"
)

// kindOf returns the kind of a fact.
func kindOf(f Fact) string {
	switch f.(type) {
	case AgainstMark:
		return DetailAgainstMark
	case AllPassed:
		return DetailAllPassed
	case ApartFromBaseline:
		return DetailApartFromBaseline
	case AsBefore:
		return DetailAsBefore
	case BadElements:
		return DetailBadElements
	case BaselineFailedToo:
		return DetailBaselineFailedToo
	case BatchFaster:
		return DetailBatchFaster
	case BatchGainsMore:
		return DetailBatchGainsMore
	case BelowBest:
		return DetailBelowBest
	case BelowFloor:
		return DetailBelowFloor
	case BothWrong:
		return DetailBothWrong
	case BlockLift:
		return DetailBlockLift
	case BringsDisturbance:
		return DetailBringsDisturbance
	case BuildFailed:
		return DetailBuildFailed
	case Built:
		return DetailBuilt
	case Capped:
		return DetailCapped
	case CaseNotRun:
		return DetailCaseNotRun
	case CasesNotRun:
		return DetailCasesNotRun
	case CasesPassed:
		return DetailCasesPassed
	case ChoosesBySize:
		return DetailChoosesBySize
	case Clean:
		return DetailClean
	case ClockMoved:
		return DetailClockMoved
	case CoarseClock:
		return DetailCoarseClock
	case CodeSizes:
		return DetailCodeSizes
	case ControlOff:
		return DetailControlOff
	case Detectable:
		return DetailDetectable
	case Disturbs:
		return DetailDisturbs
	case Drifts:
		return DetailDrifts
	case ElementCount:
		return DetailElementCount
	case EndToEnd:
		return DetailEndToEnd
	case EnergyChanges:
		return DetailEnergyChanges
	case ErrorBound:
		return DetailErrorBound
	case ExistingCases:
		return DetailExistingCases
	case ExistingFindings:
		return DetailExistingFindings
	case ExistingTimed:
		return DetailExistingTimed
	case Explained:
		return DetailExplained
	case FailedInSegment:
		return DetailFailedInSegment
	case FailedWhileTimed:
		return DetailFailedWhileTimed
	case FasterWithState:
		return DetailFasterWithState
	case Fault:
		return DetailFault
	case Faulty:
		return DetailFaulty
	case FaultyBaseline:
		return DetailFaultyBaseline
	case FewBlocks:
		return DetailFewBlocks
	case FewRounds:
		return DetailFewRounds
	case Finding:
		return DetailFinding
	case GainAlone:
		return DetailGainAlone
	case GainUnseen:
		return DetailGainUnseen
	case Grown:
		return DetailGrown
	case HiddenFindings:
		return DetailHiddenFindings
	case InputNotSanitized:
		return DetailInputNotSanitized
	case KeepsState:
		return DetailKeepsState
	case KindsApart:
		return DetailKindsApart
	case Lacking:
		return DetailLacking
	case LessPrecise:
		return DetailLessPrecise
	case LostBy:
		return DetailLostBy
	case ManifestRemoved:
		return DetailManifestRemoved
	case MeanAlone:
		return DetailMeanAlone
	case MergedCode:
		return DetailMergedCode
	case MetricMissed:
		return DetailMetricMissed
	case MetricsHold:
		return DetailMetricsHold
	case MostlyDisturbed:
		return DetailMostlyDisturbed
	case NoBaseline:
		return DetailNoBaseline
	case NoBuild:
		return DetailNoBuild
	case NoEnergy:
		return DetailNoEnergy
	case NoMark:
		return DetailNoMark
	case NoProfile:
		return DetailNoProfile
	case NoResources:
		return DetailNoResources
	case NoSanitizer:
		return DetailNoSanitizer
	case NoShapeToMeasure:
		return DetailNoShapeToMeasure
	case NoShapes:
		return DetailNoShapes
	case NoSuchShapes:
		return DetailNoSuchShapes
	case NoWeights:
		return DetailNoWeights
	case NoneMet:
		return DetailNoneMet
	case NoneWorse:
		return DetailNoneWorse
	case NotBitIdentical:
		return DetailNotBitIdentical
	case NotCounted:
		return DetailNotCounted
	case NotDeterministic:
		return DetailNotDeterministic
	case NotReached:
		return DetailNotReached
	case NotRecorded:
		return DetailNotRecorded
	case NotSanitized:
		return DetailNotSanitized
	case NotSearched:
		return DetailNotSearched
	case NotVerified:
		return DetailNotVerified
	case NothingCompared:
		return DetailNothingCompared
	case NothingGained:
		return DetailNothingGained
	case NothingGainedOn:
		return DetailNothingGainedOn
	case NothingTimed:
		return DetailNothingTimed
	case NothingToMeasure:
		return DetailNothingToMeasure
	case OfOutput:
		return DetailOfOutput
	case OfSeed:
		return DetailOfSeed
	case OfShape:
		return DetailOfShape
	case OfVariant:
		return DetailOfVariant
	case OverBudget:
		return DetailOverBudget
	case OverLimit:
		return DetailOverLimit
	case PassesWithoutDisturbed:
		return DetailPassesWithoutDisturbed
	case PrecisionKept:
		return DetailPrecisionKept
	case PrecisionLost:
		return DetailPrecisionLost
	case PreparesOnce:
		return DetailPreparesOnce
	case ProfileMissed:
		return DetailProfileMissed
	case ProfileSkipped:
		return DetailProfileSkipped
	case ProfileSkippedNote:
		return DetailProfileSkippedNote
	case Quote:
		return DetailQuote
	case ReplayNotTried:
		return DetailReplayNotTried
	case ReplayPasses:
		return DetailReplayPasses
	case Reproducible:
		return DetailReproducible
	case SecretCasesLacking:
		return DetailSecretCasesLacking
	case Series:
		return DetailSeries
	case ShapeSpeed:
		return DetailShapeSpeed
	case ShapeTime:
		return DetailShapeTime
	case Settled:
		return DetailSettled
	case SlowKind:
		return DetailSlowKind
	case SlowTail:
		return DetailSlowTail
	case Speeds:
		return DetailSpeeds
	case StateKept:
		return DetailStateKept
	case StepAlone:
		return DetailStepAlone
	case StatusOnly:
		return DetailStatusOnly
	case Suspicious:
		return DetailSuspicious
	case TestFailed:
		return DetailTestFailed
	case TestPassed:
		return DetailTestPassed
	case Times:
		return DetailTimes
	case TooFewAlone:
		return DetailTooFewAlone
	case TooNoisy:
		return DetailTooNoisy
	case ToolFailed:
		return DetailToolFailed
	case ToolLacking:
		return DetailToolLacking
	case TwoGroups:
		return DetailTwoGroups
	case Uneven:
		return DetailUneven
	case Unfit:
		return DetailUnfit
	case UnknownShape:
		return DetailUnknownShape
	case Unreliable:
		return DetailUnreliable
	case Waits:
		return DetailWaits
	case WeightsLack:
		return DetailWeightsLack
	case WithinBudget:
		return DetailWithinBudget
	case WrongBaseline:
		return DetailWrongBaseline
	case WrongCase:
		return DetailWrongCase
	case WrongInSegment:
		return DetailWrongInSegment
	case WrongOutput:
		return DetailWrongOutput
	case WrongWhileTimed:
		return DetailWrongWhileTimed
	}
	return ""
}
