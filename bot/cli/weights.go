package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/runners/work/check"
	"github.com/kernelgate/kernelgate/runners/work/weights"
)

func weightsCommand(stdout, stderr io.Writer) *cobra.Command {
	var kernel, dir string
	var opt weights.Options
	write := false
	cmd := &cobra.Command{
		Use:   "weights TRACE",
		Short: "Read from a profiler's trace how often a step launches a kernel at each shape",
		Long: "Finds the launches of a kernel in the trace of a program, and the shapes of the manifest that they have,\n" +
			"by their grid and by the recorded sizes of their inputs. Prints the section weights of the manifest, and\n" +
			"says which launches no shape has. TRACE is a Chrome trace of torch's profiler (.json or .json.gz;\n" +
			"record_shapes=True makes it exact) or an SQLite export of nsys (nsys export --type sqlite).\n\n" +
			"A step is a range ProfilerStep#N, which prof.step() marks, or a range that --range names: of\n" +
			"record_function or NVTX. Weights count from the base branch: commit them there.\n\n" +
			"Exit status: 0 the kernel was found, 2 bad input, 3 any other failure.",
		Example: "  kernelgate weights trace.json.gz --kernel sdpa_fp8\n" +
			"  kernelgate weights step.sqlite --kernel sdpa_fp8 --range decode --write",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, m, text, err := check.ManifestHere(dir, kernel)
			if err != nil {
				return err
			}
			trace, err := weights.Read(args[0])
			if err != nil {
				return err
			}
			use, err := weights.Find(m, trace, opt)
			if err != nil {
				return err
			}
			if !write || use.Section() == "" {
				fmt.Fprint(stderr, use.Text())
				fmt.Fprint(stdout, use.Section())
				return nil
			}
			changed, err := use.Write(file, text)
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, changed, 0o644); err != nil {
				return fmt.Errorf("writing the weights: %w", err)
			}
			fmt.Fprintf(stdout, "%swritten to %s\n", use.Text(), file)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", ".", "folder in which the manifest is looked for")
	f.StringVar(&kernel, "kernel", "", "name of the kernel (default: the only one of the folder)")
	f.StringVar(&opt.Range, "range", "", "name of the ranges that are steps (default: ProfilerStep#N)")
	f.IntVar(&opt.Steps, "steps", 0, "number of steps of a trace that names none; the time of a step is then unknown")
	f.BoolVar(&write, "write", false, "write the weights into the manifest")
	return cmd
}
