package facts

// A ManifestRemoved is a change that removes the kernel's manifest.
type ManifestRemoved struct{}

func (ManifestRemoved) Sentence() string {
	return "The change removes the kernel's manifest, and with it the gate"
}

// KeepManifest is the advice to it.
type KeepManifest struct{}

func (KeepManifest) Step(Reader) string {
	return "keep kernel.yaml where it is, or ask a maintainer to comment /override with the reason"
}

// A NoBuild is evidence without a build.
type NoBuild struct{}

func (NoBuild) Sentence() string { return "no build was recorded" }

// A Built is a candidate that compiled.
type Built struct {
	Compiler string // empty where it is not known
	SameCode bool   // as the baseline's
}

func (b Built) Sentence() string {
	text := "compiled"
	if b.Compiler != "" {
		text += " with " + b.Compiler
	}
	if b.SameCode {
		text += "; the machine code is the same as the baseline's"
	}
	return text
}

// A BuildFailed is a side that does not compile, or both for the same reason.
type BuildFailed struct {
	Baseline, Candidate bool
	Error               string // the compiler's, in one line
}

func (b BuildFailed) Sentence() string {
	switch {
	case b.Baseline && b.Candidate:
		return "Neither the baseline nor the candidate builds, for the same reason: " + b.Error
	case b.Baseline:
		return "The baseline does not build on this runner: " + b.Error
	}
	return "The candidate does not build: " + b.Error
}

// A BaselineFailedToo is a baseline that does not compile either, for a different reason.
type BaselineFailedToo struct{ Error string }

func (b BaselineFailedToo) Sentence() string { return "the baseline does not build either: " + b.Error }

// MakeItCompile is the advice for a candidate that does not compile.
type MakeItCompile struct{}

func (MakeItCompile) Step(Reader) string { return "make the kernel compile with the manifest's flags" }

// FixBaseOrCompiler is the advice for a baseline that does not compile.
type FixBaseOrCompiler struct{}

func (FixBaseOrCompiler) Step(Reader) string {
	return "fix the base branch or the runner's compiler, then run again"
}

// FixBase is the advice for a fault that the base branch has.
type FixBase struct{}

func (FixBase) Step(Reader) string { return "fix it on the base branch: this change did not cause it" }

// A MergedCode is machine code that equals the baseline's: the gate was answered when the baseline was merged.
type MergedCode struct{}

func (MergedCode) Sentence() string { return sameCode + ", which is merged" }

const sameCode = "The machine code is the same as the baseline's"
