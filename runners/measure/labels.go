package measure

import (
	"context"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// Labels is what a runner on this host can take: cpu, and where NVML finds a
// GPU, gpu and its name, such as l4.
func Labels() []string {
	labels := []string{"cpu"}
	library, err := nvml.Open()
	if err != nil {
		return labels // no driver, no GPU
	}
	defer library.Close()
	count, err := library.DeviceCount()
	if err != nil || count == 0 {
		return labels
	}
	labels = append(labels, "gpu")
	// A runner measures on the first GPU.
	if device, err := library.DeviceByIndex(0); err == nil {
		if name, err := device.Name(); err == nil {
			labels = append(labels, modelLabel(name))
		}
	}
	return slices.DeleteFunc(slices.Compact(labels), func(l string) bool { return l == "" })
}

// BuildLabels is what a runner on this host can take that compiles and measures nothing: one label for each kind of compiler that is
// here.
func (c Config) BuildLabels(ctx context.Context) ([]string, error) {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	kinds, err := toolchain.Installed{Paths: c.Toolchains, Getenv: c.Getenv}.Kinds(ctx)
	var labels []string
	for _, kind := range kinds {
		labels = append(labels, runners.BuildLabel(kind))
	}
	return labels, err
}

// modelLabel is a GPU's model as policies write it: "NVIDIA A100-SXM4-80GB" is
// a100. The model ends with the first word that has a digit.
func modelLabel(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	words = slices.DeleteFunc(words, func(w string) bool { return w == "nvidia" || w == "tesla" || w == "geforce" || w == "quadro" })
	for i, w := range words {
		if strings.ContainsFunc(w, unicode.IsDigit) {
			words = words[:i+1]
			break
		}
	}
	return strings.Join(words, "-")
}
