package grammar

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/policies/ident"
)

const (
	maxKernels = 50
	maxShapes  = 100
	maxSeeds   = 100  // the policy's limit
	maxRounds  = 1000 // the policy's limit
	maxRef     = 200
	maxReason  = 500
)

// without parses a command that takes no arguments.
func without(c Command) func(string) (Command, error) {
	return func(arguments string) (Command, error) {
		if arguments != "" {
			return nil, fmt.Errorf("%s is too much: the command takes no argument (write only `%s` on its line)", code(arguments), c)
		}
		return c, nil
	}
}

func readOverride(arguments string) (Command, error) {
	switch n := utf8.RuneCountInString(arguments); {
	case !strings.ContainsFunc(arguments, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }):
		return nil, errors.New("the reason is missing (write it on the same line, such as `/override accuracy matters more here, see #12`)")
	case n > maxReason:
		return nil, fmt.Errorf("the reason has %d characters (write at most %d)", n, maxReason)
	}
	return Override{arguments}, nil
}

var commitID = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

func readOKToTest(arguments string) (Command, error) {
	sha, err := readCommit(arguments)
	return OKToTest{sha}, err
}

func readApprovePolicy(arguments string) (Command, error) {
	sha, err := readCommit(arguments)
	return ApprovePolicy{sha}, err
}

func readCommit(arguments string) (string, error) {
	const example = "(write the full id of the head commit that you have read: its 40 hex digits)"
	sha := strings.ToLower(arguments)
	switch {
	case sha == "":
		return "", errors.New("the sha is missing " + example)
	case !commitID.MatchString(sha):
		return "", fmt.Errorf("sha: %s is not a commit id %s", code(arguments), example)
	}
	return sha, nil
}

// kernelName matches a kernel's name or its folder.
var kernelName = regexp.MustCompile(`^[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*$`)

var options = []string{"shapes", "seeds", "rounds", "vs"}

func readRebench(arguments string) (Command, error) {
	var r Rebench
	given := map[string]bool{}
	words, err := takeDevice(strings.FieldsFunc(arguments, space), &r.Device)
	if err != nil {
		return nil, err
	}
	for _, word := range words {
		key, value, option := strings.Cut(word, "=")
		key = strings.ToLower(key)
		if !option && key == "profile" {
			option = true
		}
		if !option {
			if err := addKernel(&r.Kernels, word); err != nil {
				return nil, err
			}
			continue
		}
		if given[key] {
			return nil, fmt.Errorf("%s is given twice (delete one)", code(key))
		}
		given[key] = true
		if err := r.set(key, value, strings.Contains(word, "=")); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addKernel adds the name or the folder of a kernel to a list.
func addKernel(kernels *[]string, word string) error {
	kernel := strings.TrimSuffix(word, "/")
	switch {
	case !kernelName.MatchString(kernel):
		return fmt.Errorf("kernel: %s is not a kernel (write its name, or its folder such as `kernels/sdpa`)", code(word))
	case slices.Contains(*kernels, kernel):
		return fmt.Errorf("kernel: %s is named twice (delete one)", code(kernel))
	case len(*kernels) == maxKernels:
		return fmt.Errorf("kernel: too many (write at most %d)", maxKernels)
	}
	*kernels = append(*kernels, kernel)
	return nil
}

func readWhy(arguments string) (Command, error) {
	var w Why
	for _, word := range strings.FieldsFunc(arguments, space) {
		key, value, option := strings.Cut(word, "=")
		switch key = strings.ToLower(key); {
		case !option:
			if err := addKernel(&w.Words, word); err != nil {
				return nil, err
			}
		case key != "shapes":
			return nil, fmt.Errorf("%s is not an argument (write a kernel, a shape, or `shapes=`)", code(key+"="))
		case w.Shapes != nil:
			return nil, fmt.Errorf("%s is given twice (delete one)", code(key))
		default:
			w.Shapes = strings.Split(value, ",")
			if err := checkShapes(w.Shapes); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

// set parses one option.
func (r *Rebench) set(key, value string, hasValue bool) (err error) {
	switch key {
	case "shapes":
		r.Shapes = strings.Split(value, ",")
		return checkShapes(r.Shapes)
	case "seeds":
		r.Seeds, err = readSeeds(value)
		return err
	case "rounds":
		n, ok := wholeNumber(value)
		if !ok || n < 1 || n > maxRounds {
			return fmt.Errorf("rounds: %s is not a number of rounds (write 1 to %d, such as `rounds=20`)", code(value), maxRounds)
		}
		r.Rounds = int(n)
	case "vs":
		r.Versus = value
		return checkRef(value)
	case "profile":
		if hasValue {
			return fmt.Errorf("profile: takes no value, and %s is one (write only `profile`)", code(value))
		}
		r.Profile = true
	default:
		hint := "write " + listed(options) + ", or `profile`"
		if i := slices.IndexFunc(options, func(o string) bool { return oneTypo(key, o) }); i >= 0 {
			hint = "write `" + options[i] + "=`"
		}
		return fmt.Errorf("%s is not an argument (%s)", code(key+"="), hint)
	}
	return nil
}

func listed(options []string) string {
	return "`" + strings.Join(options, "=`, `") + "=`"
}

func checkShapes(names []string) error {
	if len(names) > maxShapes {
		return fmt.Errorf("shapes: %d names (write at most %d)", len(names), maxShapes)
	}
	seen := map[string]bool{}
	for _, name := range names {
		switch {
		case name == "":
			return errors.New("shapes: a name is empty (write them with commas and no blanks, such as `shapes=a,b`)")
		case !ident.IsName(name):
			return fmt.Errorf("shapes: %s is not a name (write letters, digits, `.`, `_` and `-`)", code(name))
		case seen[name]:
			return fmt.Errorf("shapes: %s is named twice (delete one)", code(name))
		}
		seen[name] = true
	}
	return nil
}

func readSeeds(text string) ([]int64, error) {
	words := strings.Split(text, ",")
	if len(words) > maxSeeds {
		return nil, fmt.Errorf("seeds: %d of them (write at most %d)", len(words), maxSeeds)
	}
	seeds := make([]int64, len(words))
	for i, word := range words {
		n, ok := wholeNumber(word)
		switch {
		case !ok:
			return nil, fmt.Errorf("seeds: %s is not a seed (write whole numbers from 0 with commas and no blanks, such as `seeds=0,1`)", code(word))
		case slices.Contains(seeds[:i], n):
			return nil, fmt.Errorf("seeds: `%d` is named twice (delete one)", n)
		}
		seeds[i] = n
	}
	return seeds, nil
}

// wholeNumber accepts only digits: no sign, no space.
func wholeNumber(text string) (int64, bool) {
	if strings.HasPrefix(text, "+") {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}

// isRef accepts names of branches, tags and commits that have no other meaning to git: no option, no
// range, no path, no expression.
func isRef(ref string) bool {
	strange := func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("._/-+@#=,%!", r) || r == utf8.RuneError
	}
	return ref != "" && len(ref) <= maxRef && !strings.HasPrefix(ref, "-") && !strings.HasPrefix(ref, ".") && !strings.Contains(ref, "..") && !strings.ContainsFunc(ref, strange)
}

func checkRef(ref string) error {
	if !isRef(ref) {
		return fmt.Errorf("vs: %s is not a ref (write a branch, a tag, a commit or `self`, such as `vs=main`)", code(ref))
	}
	return nil
}
