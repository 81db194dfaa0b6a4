package manifest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A flag can make a compiler read, write or run any file, so only those listed here are passed on.
// None of them can contain a path.

// define is a macro whose value can neither quote nor leave its word.
const define = `-D[A-Za-z_][A-Za-z0-9_]*(?:=[A-Za-z0-9_.+-]*)?`

type flagList struct {
	allowed *regexp.Regexp
	prompt  string
}

var flagLists = map[Mode]flagList{
	ModeCPU: {
		regexp.MustCompile(`^(?:` + strings.Join([]string{
			`-O[0-3s]`, `-Ofast`, `-march=(?:native|x86-64-v[234]|armv8-a)`, `-mtune=native`, `-ffast-math`, `-fno-[a-z0-9-]+`,
			`-funroll-loops`, `-ftree-vectorize`, `-ftree-slp-vectorize`, `-ffp-contract=(?:fast|on|off)`,
			`-std=[a-z0-9+]+`, `-W[a-z][a-z0-9+-]+(?:=[a-z0-9+-]+)?`, `-g`, `-lm`, define,
		}, "|") + `)$`),
		"-O0 to -O3, -Os, -Ofast, -march=native, -march=x86-64-v2 to -v4, -march=armv8-a, -mtune=native, -ffast-math, -fno-NAME, " +
			"-funroll-loops, -ftree-vectorize, -ftree-slp-vectorize, -ffp-contract=fast|on|off, -std=NAME, -WNAME, -g, -lm, -DNAME[=VALUE]",
	},
	ModeCUDA: {
		regexp.MustCompile(`^(?:` + strings.Join([]string{
			`-O[0-3]`, `--?use_fast_math`, `-std=[a-z0-9+]+`, `-lineinfo`, `--?maxrregcount=[0-9]{1,3}`, define,
			`--expt-relaxed-constexpr`, `--expt-extended-lambda`, `--?(?:fmad|ftz|prec-div|prec-sqrt)=(?:true|false)`,
			`-Xptxas`, `-Xptxas=` + ptxasFlag,
		}, "|") + `)$`),
		"-O0 to -O3, --use_fast_math, -std=NAME, -lineinfo, -maxrregcount=N, --fmad=, --ftz=, --prec-div=, --prec-sqrt=true|false, " +
			"--expt-relaxed-constexpr, --expt-extended-lambda, -Xptxas=FLAG with " + ptxasPrompt + ", -DNAME[=VALUE]",
	},
}

const (
	ptxasFlag   = `(?:-O[0-3]|-v|-dlcm=c[agsv]|-dscm=c[agsv]|-warn-spills|-warn-lmem-usage)`
	ptxasPrompt = "-O0 to -O3, -v, -dlcm=, -dscm=, -warn-spills or -warn-lmem-usage"
)

var ptxasAllowed = regexp.MustCompile(`^` + ptxasFlag + `$`)

// What ptxas may be given where it is the compiler.
const ptxasFlagsPrompt = ptxasPrompt + ", -maxrregcount=N, --fmad=true|false"

var ptxasFlags = regexp.MustCompile(`^(?:` + ptxasFlag + `|--?maxrregcount=[0-9]{1,3}|--?fmad=(?:true|false))$`)

func (c *checker) checkFlags() {
	c.flagsAt(c.n.Child("flags"), c.m.Flags)
	for _, v := range c.m.Variants {
		c.flagsAt(c.n.Child("variants", v.Name, "flags"), v.Flags)
	}
}

func (c *checker) flagsAt(at *strict.Node, flags []string) {
	list, known := c.m.flagList()
	if !known {
		return // the mode takes none, or was refused itself
	}
	toPTXAS := false
	for i, flag := range flags {
		item := itemOf(at, i)
		switch {
		case toPTXAS && !ptxasAllowed.MatchString(flag):
			c.errorf(item, "%q is not allowed behind -Xptxas (allowed: %s)", flag, ptxasPrompt)
		case !toPTXAS && !list.allowed.MatchString(flag):
			c.errorf(item, "%q is not an allowed flag (allowed: %s)", flag, list.prompt)
		}
		toPTXAS = !toPTXAS && flag == "-Xptxas"
		if toPTXAS && i == len(flags)-1 {
			c.errorf(item, "%q is followed by nothing (write e.g. -Xptxas=-O3)", flag)
		}
		if macro, ok := strings.CutPrefix(flag, "-D"); ok {
			name, _, _ := strings.Cut(macro, "=")
			if slices.ContainsFunc(c.m.Toggles, func(t Toggle) bool { return t.Name == name }) {
				c.errorf(item, "%q defines the toggle %s (set it under the variant's toggles)", flag, name)
			}
		}
	}
}
