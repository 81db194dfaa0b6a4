package scaffold

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A function is a kernel, or a function in C, as its source defines it.
type function struct {
	name       string
	template   string // its template parameters; "" if it is none
	threads    int    // of __launch_bounds__; 0 where there is none
	parameters []parameter
	body       string
	returns    bool // something
}

// A parameter is one of a kernel, as far as its source tells.
type parameter struct {
	name    string
	dtype   manifest.DType
	guessed string // what is not known of its type; "" is nothing
	access  manifest.Access
	doubt   string // why the access is a guess; "" if the source shows it
	lanes   int    // of a vector type; 0 for most
	use     use    // of a scalar
}

// A use is what a scalar is for, by its name and its type.
type use int

const (
	aSize   use = iota // it is a dim
	aStride            // it follows from the dims
	aSwitch            // an offset, an index or a flag: 0 is right for many
	aFactor            // 1 is right for many
	aNumber            // a floating-point number
)

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"`)
	// attributes stand between __global__ and the name, and have brackets of their own.
	attributes = regexp.MustCompile(`__(?:launch_bounds|cluster_dims|maxnreg)__\s*\(\s*(\w*)(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|__attribute__\s*\(\([^()]*(?:\([^()]*\))?[^()]*\)\)`)
	global     = regexp.MustCompile(`(?:template\s*<([^;{}]*)>\s*)?(?:extern\s*"C"\s*)?(?:static\s+|inline\s+)*__global__\s+((?:[\w:]+\s+)*?)(\w+)\s*\(([^{};]*)\)\s*\{`)
	// plainFunction is a function at the beginning of a line, as nearly all are written.
	plainFunction = regexp.MustCompile(`(?m)^(?:template\s*<([^;{}]*)>\s*)?((?:extern\s*"C"\s*)?(?:[A-Za-z_][\w:]*[\s*&]+)+)(\w+)\s*\(([^{};]*)\)\s*(?:noexcept\s*)?\{`)
	bounds        = regexp.MustCompile(`__bounds_(\d+)__`)
)

// plain removes what could be mistaken for code, and writes attributes as one word.
func plain(text string) string {
	text = comments.ReplaceAllStringFunc(text, func(found string) string {
		if found == `"C"` {
			return found
		}
		return " " + strings.Repeat("\n", strings.Count(found, "\n"))
	})
	return attributes.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "__launch_bounds__") {
			return " __bounds_" + attributes.FindStringSubmatch(found)[1] + "__ "
		}
		return " "
	})
}

// kernelsIn finds the kernels that a CUDA source defines. It knows no preprocessor and no types of others.
func kernelsIn(text string) []function {
	text = plain(text)
	return functionsOf(text, global.FindAllStringSubmatchIndex(text, -1), namedTypes(text))
}

// functionsIn finds the functions of a C source: those that the linker knows, or the static ones. Those that take an array come
// without the others; arraysOnly leaves the others out in any case.
func functionsIn(text string, static, arraysOnly bool) []function {
	text = plain(text)
	var found [][]int
	for _, at := range plainFunction.FindAllStringSubmatchIndex(text, -1) {
		before, name := text[at[4]:at[5]], text[at[6]:at[7]]
		words := strings.Fields(before)
		if slices.Contains(words, "static") != static || slices.Contains(words, "else") || slices.Contains(words, "return") || slices.Contains([]string{"if", "for", "while", "switch", "main"}, name) {
			continue
		}
		found = append(found, at)
	}
	all := functionsOf(text, found, namedTypes(text))
	withArrays := slices.DeleteFunc(slices.Clone(all), func(f function) bool {
		return !slices.ContainsFunc(f.parameters, func(p parameter) bool { return p.access != manifest.Scalar })
	})
	if len(withArrays) == 0 && arraysOnly {
		return nil
	}
	if len(withArrays) == 0 {
		return all
	}
	return withArrays
}

func functionsOf(text string, found [][]int, types map[string]string) []function {
	var all []function
	for _, at := range found {
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		f := function{name: group(3), body: block(text[at[1]-1:])}
		if at[2] >= 0 {
			f.template = strings.Join(strings.Fields(group(1)), " ")
		}
		if b := bounds.FindStringSubmatch(group(2)); b != nil {
			f.threads, _ = strconv.Atoi(b[1])
		}
		f.returns = !slices.Contains(strings.Fields(group(2)), "void") || strings.Contains(group(2), "*")
		for i, p := range splitParameters(group(4)) {
			found := parameterOf(p, types)
			if found.name == "unnamed" {
				found.name = fmt.Sprintf("unnamed%d", i)
			}
			f.parameters = append(f.parameters, found)
		}
		f.readBody()
		all = append(all, f)
	}
	return all
}

// block returns what is between the first bracket and the one that closes it.
func block(text string) string {
	depth := 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[:i+1]
			}
		}
	}
	return text
}

var typeName = regexp.MustCompile(`(?m)^\s*(?:typedef\s+([\w:][\w: ]*?)\s+(\w+)\s*;|using\s+(\w+)\s*=\s*([\w:][\w: ]*?)\s*;|#\s*define\s+(\w+)\s+([\w:][\w: ]*?)\s*$)`)

// namedTypes finds names that a file gives to types that are known here.
func namedTypes(text string) map[string]string {
	types := map[string]string{}
	for _, m := range typeName.FindAllStringSubmatch(text, -1) {
		name, of := m[2]+m[3]+m[5], m[1]+m[4]+m[6]
		if _, known := dtypes[trimType(of)]; known && name != "" {
			types[name] = of
		}
	}
	return types
}

// trimType writes a type as the table of types has it.
func trimType(name string) string {
	for _, prefix := range []string{"std::", "at::", "c10::"} {
		name = strings.TrimPrefix(name, prefix)
	}
	for _, long := range []string{"long long int", "long int", "short int"} {
		if strings.HasSuffix(name, long) {
			name = strings.TrimSuffix(name, " int")
		}
	}
	return name
}

// splitParameters cuts at commas that are not within brackets.
func splitParameters(list string) []string {
	var all []string
	depth, from := 0, 0
	for i, r := range list + "," {
		switch {
		case strings.ContainsRune("(<[", r):
			depth++
		case strings.ContainsRune(")>]", r):
			depth--
		case r == ',' && depth == 0:
			if p := strings.TrimSpace(list[from:min(i, len(list))]); p != "" && p != "void" {
				all = append(all, p)
			}
			from = i + 1
		}
	}
	return all
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	qualifiers = regexp.MustCompile(`\b(?:const|__restrict__|__restrict|restrict|RESTRICT|volatile|__grid_constant__|struct|register)\b`)
	constWord  = regexp.MustCompile(`\bconst\b`)
	brackets   = regexp.MustCompile(`\[[^\]]*\]`)
	vector     = regexp.MustCompile(`^(float|double|int|uint|half|__half|char|uchar|short|ushort|__nv_bfloat16)([234])$`)
)

// byMacro is an array that a macro declares, such as DATA_TYPE POLYBENCH_2D(A, N, M, n, m): what the macro makes of it is in a
// header of the project.
var byMacro = regexp.MustCompile(`^((?:[A-Za-z_][\w:]*[\s*]+)+)([A-Za-z_]\w*)\s*\(\s*([A-Za-z_]\w*)\s*(?:,[^()*]*)?\)$`)

func parameterOf(text string, types map[string]string) parameter {
	text, _, _ = strings.Cut(text, "=")
	if m := byMacro.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		p := parameterOf(m[1]+"*"+m[3], types)
		p.guessed = strings.TrimPrefix(p.guessed+"; "+m[2]+" is a macro that is not known here", "; ")
		return p
	}
	constant := constWord.MatchString(text[:max(strings.IndexAny(text+"*", "*"), 0)])
	words := strings.Join(strings.Fields(qualifiers.ReplaceAllString(brackets.ReplaceAllString(text, "*"), " ")), " ")
	pointer := strings.Contains(words, "*")
	list := strings.Fields(strings.ReplaceAll(words, "*", " * "))
	list = slices.DeleteFunc(list, func(w string) bool { return w == "*" })
	if len(list) == 0 || !identifier.MatchString(list[len(list)-1]) || dtypes[list[len(list)-1]] != "" {
		list = append(list, "unnamed")
	}
	p := parameter{name: list[len(list)-1], access: manifest.Scalar}
	base := strings.Join(list[:len(list)-1], " ")
	if known, ok := types[base]; ok {
		base = known
	}
	given := base
	base = trimType(base)
	if v := vector.FindStringSubmatch(base); v != nil {
		base, p.lanes = map[string]string{"uchar": "unsigned char", "ushort": "unsigned short"}[v[1]], int(v[2][0]-'0')
		if base == "" {
			base = v[1]
		}
	}
	var known bool
	if p.dtype, known = dtypes[base]; !known {
		p.dtype, p.guessed = likelyType(given), "the type "+given+" is not known here"
	}
	switch {
	case pointer && constant:
		p.access = manifest.In
	case pointer:
		p.access = manifest.Out
	default:
		p.use = useOf(p)
	}
	return p
}

var (
	longName  = regexp.MustCompile(`(?i)long|int64|i64`)
	wholeName = regexp.MustCompile(`(?i)int|size|idx|index|^dim`)
)

// likelyType is the format of a type that the file does not define, by its name.
func likelyType(name string) manifest.DType {
	switch {
	case longName.MatchString(name):
		return manifest.I64
	case wholeName.MatchString(name) && !strings.ContainsAny(name, "<("):
		return manifest.I32
	case strings.Contains(strings.ToLower(name), "double"):
		return manifest.F64
	}
	return manifest.F32
}

var (
	strideName = regexp.MustCompile(`(?i)stride|pitch|^ld[a-z]?$|_ld$|^inc_?[a-z]$`)
	switchName = regexp.MustCompile(`(?i)offset|start|begin|seed|idx|index|flag|mode|^is_|^use_|^has_|^do_|axis|shift|inverse|causal|padding|^pad|_pad`)
	factorName = regexp.MustCompile(`(?i)step|iter|dilat|group|radius|kernel|^k[hw]$|scale|alpha|beta|power|order|level|depth|log|window|split|repeat|factor|per_|_per|threads|blocks|warps|tile|unroll|wpt`)
)

// useOf tells what a scalar is for.
func useOf(p parameter) use {
	switch {
	case !integer(p.dtype) && p.dtype != manifest.Bool:
		return aNumber
	case p.dtype == manifest.Bool:
		return aSwitch
	case p.dtype.Size() < 4: // no size of an array fits into two bytes
		return aFactor
	case strideName.MatchString(p.name):
		return aStride
	case switchName.MatchString(p.name):
		return aSwitch
	case factorName.MatchString(p.name):
		return aFactor
	}
	return aSize
}

// ParameterNames returns the names of a function's parameters in a C or CUDA source, and false if the source does not define one
// function of that name.
func ParameterNames(text, name string) ([]string, bool) {
	text = plain(text)
	var found []function
	for _, pattern := range []*regexp.Regexp{global, plainFunction} {
		for _, f := range functionsOf(text, pattern.FindAllStringSubmatchIndex(text, -1), nil) {
			if f.name == name {
				found = append(found, f)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	var names []string
	for _, p := range found[0].parameters {
		names = append(names, p.name)
	}
	return names, true
}
