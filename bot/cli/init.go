package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/runners/work/scaffold"
)

func initCommand(stdout io.Writer) *cobra.Command {
	opt := scaffold.Options{Getenv: os.Getenv}
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "init PATH...",
		Short: "Write a first manifest, reference and policy for a kernel or a problem that exists already",
		Long: "Looks at what it is given and writes a manifest, a reference and, if the repository has none, a policy.\n" +
			"What it could only guess has a comment, # TODO: ..., and is listed with the most doubtful first. It runs\n" +
			"nothing of what it reads. Known are\n\n" +
			"  kernel.cu                          a CUDA kernel\n" +
			"  kernel.c, kernel.cpp               a function in C or C++\n" +
			"  kernel.py                          a Triton kernel, or a KernelBench problem (Model, get_inputs)\n" +
			"  definition.json [workloads.jsonl]  a FlashInfer-Bench definition and its workloads\n" +
			"  task.yml                           a GPU MODE task, with reference.py next to it\n" +
			"  a program                          that uses Google Benchmark or nvbench\n\n" +
			"Submissions of GPU MODE and KernelBench run on the host: they are measured in command mode by a\n" +
			"harness that init writes. Existing files are kept unless --force is given.\n\n" +
			"Exit status: 0 written, 2 bad input, 3 any other failure.",
		Example: "  kernelgate init csrc/softmax.cu\n" +
			"  kernelgate init ops/layernorm.py --entry layernorm_fwd --out kernels/layernorm\n" +
			"  kernelgate init rmsnorm.json rmsnorm.jsonl --dry-run",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Paths = args
			made, err := scaffold.Look(cmd.Context(), opt)
			if err != nil {
				return err
			}
			if dryRun {
				for _, f := range made.Files {
					fmt.Fprintf(stdout, "--- %s%s\n%s", f.Name, map[bool]string{true: " (exists)"}[f.Exists], f.Text)
				}
				return nil
			}
			if err := made.Write(opt.Force); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s is %s.\n", made.Kernel, made.Kind)
			for _, f := range made.Files {
				fmt.Fprintf(stdout, "wrote %s\n", f.Name)
			}
			if len(made.Guesses) > 0 {
				fmt.Fprint(stdout, "\nIt guessed the following, the most doubtful first; each has a comment with TODO:\n")
			}
			for _, g := range made.Guesses {
				place := g.File
				if g.Line > 0 {
					place = fmt.Sprintf("%s:%d", g.File, g.Line)
				}
				fmt.Fprintf(stdout, "  %s: %s\n", place, g.What)
			}
			fmt.Fprintf(stdout, "\nCheck what was guessed, commit the files, and run\n  %s\n", strings.Join(made.Next, "\n  "))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Out, "out", "", "folder for the manifest and the reference (default: next to PATH; kernels/NAME for a definition)")
	f.StringVar(&opt.Entry, "entry", "", "kernel of a file with several")
	f.BoolVar(&dryRun, "dry-run", false, "print the files and write nothing")
	f.BoolVar(&opt.Force, "force", false, "replace existing files")
	_ = cmd.MarkFlagDirname("out")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"cu", "c", "cpp", "py", "json", "jsonl", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return cmd
}
