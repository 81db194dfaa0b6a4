package cpu

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// stubText is the main function of the program that runs the kernel: a launcher, and the process
// that it starts for every command. It has neither the clock nor the expected output, so an attack
// on it gains nothing.
//
//go:embed stub/main.c
var stubText string

// Descriptors of the program, in the order of the sandbox's ExtraFiles.
const (
	fdMemory = 3 + iota
	fdCommand
	fdReply
)

// What the kernel's process says.
const (
	saysReady   = 'r' // it waits for its command
	saysDone    = 'k' // the kernel has returned from the last slot
	saysRefused = 'x' // a system call was refused; its number follows in four bytes
	saysAborted = 'a' // the kernel called abort
)

// stub writes the C main for an entry point with the given prototype and
// arguments. A worker is made only where there is a filter.
func stub(prototype, entry string, args []tensor.Arg, threads int) string {
	filter, _ := filterText(threads)
	pass := passed(args, func(i int, a tensor.Arg) string {
		return fmt.Sprintf("(%s *)(memory + word[%d])", a.DType.CType(), i)
	})
	return strings.NewReplacer(
		"$PROTOTYPE", strings.TrimSuffix(prototype, ";"),
		"$WORDS", fmt.Sprint(len(args)),
		"$CALL", fmt.Sprintf("%s(%s)", entry, strings.Join(pass, ", ")),
		"$FILTER", filter,
		"$MEMORY", fmt.Sprint(fdMemory), "$COMMAND", fmt.Sprint(fdCommand), "$REPLY", fmt.Sprint(fdReply), "$ABORTED", fmt.Sprint(aborted),
	).Replace(stubText)
}

// passed returns the arguments of the call as C expressions: arrays as given, scalars from their
// words, and structs composed of both.
func passed(args []tensor.Arg, array func(i int, a tensor.Arg) string) []string {
	one := func(i int) string {
		if i < 0 {
			return "0"
		}
		if a := args[i]; a.Array() {
			return array(i, a)
		}
		return fmt.Sprintf("*(%s *)&word[%d]", args[i].DType.CType(), i)
	}
	var pass []string
	for i, a := range args {
		switch {
		case a.Inside:
		case a.Access == manifest.Absent:
			pass = append(pass, "0")
		case a.Parts != nil:
			var parts []string
			for _, p := range a.Parts {
				parts = append(parts, one(p.Arg))
			}
			pass = append(pass, fmt.Sprintf("(struct kernelgate_%s){%s}", a.Name, strings.Join(parts, ", ")))
		default:
			pass = append(pass, one(i))
		}
	}
	return pass
}
