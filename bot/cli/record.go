package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/mcp"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

func recordCommand(stdout io.Writer) *cobra.Command {
	var helper bool
	file, shape := manifest.FileName, ""
	cmd := &cobra.Command{
		Use:   "record [FILE]",
		Short: "Check a file of recorded inputs, and print its lines for the manifest",
		Long: "Compares a safetensors file with the arguments of a kernel at a shape, and prints the lines that name it in\n" +
			"kernel.yaml. The file is written in Python, where the real tensors are:\n\n" +
			"  kernelgate record --helper > kernelgate_record.py\n\n" +
			"  import kernelgate_record, torch.nn.functional as F\n" +
			"  with kernelgate_record.record(\"inputs/decode.safetensors\", of=(F, \"softmax\"), names=[\"x\"]):\n" +
			"      model(tokens)   # the first call of the function is stored\n\n" +
			"The helper needs only the standard library, and takes PyTorch tensors and NumPy arrays. The Python client of\n" +
			"kernelgate has it as kernelgate.record. The file holds real data: whoever can read the repository can read it.\n" +
			"kernelgate shows none of its values.\n\n" +
			"Exit status: 0 printed, 2 bad input, 3 any other failure.",
		Example: "  kernelgate record --helper > kernelgate_record.py\n  kernelgate record kernels/softmax/inputs/decode.safetensors --manifest kernels/softmax/kernel.yaml --shape mission",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if helper {
				if len(args) > 0 {
					return usage.Errorf("--helper takes no file (write kernelgate record --helper > kernelgate_record.py)")
				}
				_, err := stdout.Write(mcp.RecordHelper)
				return err
			}
			if len(args) == 0 {
				return usage.Errorf("name the file that was recorded (or write --helper, which prints the Python module that records)")
			}
			lines, err := recordedLines(args[0], file, shape)
			if err != nil {
				return usage.Error{Err: err}
			}
			_, err = fmt.Fprint(stdout, lines)
			return err
		},
	}
	cmd.Flags().BoolVar(&helper, "helper", false, "print the Python module that records")
	cmd.Flags().StringVar(&file, "manifest", file, "the kernel's manifest")
	cmd.Flags().StringVar(&shape, "shape", "", "the shape that was recorded (default: the manifest's first)")
	return cmd
}

// recordedLines checks a file against a manifest, and returns the lines that name it there.
func recordedLines(path, manifestPath, shape string) (string, error) {
	text, err := os.ReadFile(manifestPath)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no %s (name the kernel's manifest with --manifest)", manifestPath)
	}
	if err != nil {
		return "", err
	}
	m, err := manifest.Parse(manifestPath, text)
	if err != nil {
		return "", err
	}
	if shape == "" {
		shape = m.Shapes[0].Name
	}
	if _, ok := m.Shape(shape); !ok {
		return "", fmt.Errorf("--shape: %s has no shape %q (it has %s)", m.Name, shape, strings.Join(m.ShapeNames(), ", "))
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > recordings.MaxBytes {
		return "", fmt.Errorf("%s has more than %d MiB (record a smaller shape)", path, recordings.MaxBytes>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if !distribution.IsRecordingName(name) {
		name = "recorded"
	}
	r := manifest.Recording{Name: name, File: filepath.ToSlash(path), SHA256: fmt.Sprintf("%x", sha256.Sum256(data)), Shape: shape, Missing: manifest.MissingError}
	if rel, err := filepath.Rel(filepath.Dir(manifestPath), path); err == nil && filepath.IsLocal(rel) {
		r.File = filepath.ToSlash(rel)
	}
	if _, err := tensor.NewRecording(m, r, data); err != nil {
		return "", err
	}
	return fmt.Sprintf("recorded:\n  %s:\n    file: %s\n    sha256: %s\n    shape: %s\n    vary: {noise: 0.1}   # without it, nothing is timed on the recording\n", r.Name, r.File, r.SHA256, r.Shape), nil
}
