package gpus

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/kernelgate/kernelgate/runners"
)

// Labels returns the runner labels of a host with these GPUs: cpu, and with GPUs gpu and the names
// of their models, such as l4.
func Labels(all []GPU) []string {
	labels := []string{runners.CPULabel}
	for i := range all {
		for _, l := range all[i].labels() {
			if !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
	}
	return labels
}

// labels returns the labels by which a job may ask for this GPU.
func (g GPU) labels() []string {
	if label := modelLabel(g.Name); label != "" {
		return []string{runners.GPULabel, label}
	}
	return []string{runners.GPULabel}
}

// Share distributes the labels that a host must take to its GPUs. Without asked labels it uses
// those that are found. A GPU's model is a label only of that model's GPUs. Kernels for the CPU go
// with the first GPU: two at a time would disturb each other. GPUs without any label are left out,
// and so are all GPUs if only cpu is asked for.
func Share(all []GPU, asked []string) (used []GPU, labels [][]string) {
	if len(asked) == 0 {
		asked = Labels(all)
	} else if !slices.ContainsFunc(asked, func(l string) bool { return l != runners.CPULabel }) {
		return nil, nil
	}
	models := Labels(all)
	for _, g := range all {
		own := g.labels()
		mine := slices.DeleteFunc(slices.Clone(asked), func(l string) bool {
			if l == runners.CPULabel {
				return len(used) > 0
			}
			return slices.Contains(models, l) && !slices.Contains(own, l)
		})
		if len(mine) > 0 {
			used, labels = append(used, g), append(labels, mine)
		}
	}
	return used, labels
}

// modelLabel returns a GPU's model as policies write it: "NVIDIA A100-SXM4-80GB" is a100. The model
// ends with the first word that has a digit.
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

// LabelsHere returns the labels of this host with the GPUs that spec selects; "" means all.
func LabelsHere(getenv func(string) string, spec string) []string {
	all, _ := Here(getenv) // GPUs that cannot be listed cannot be used; the doctor says why
	picked, err := Select(all, cmp.Or(spec, "all"))
	if err != nil {
		return Labels(all) // the runner itself will report the error
	}
	return Labels(picked)
}
