package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/results"
)

// A definition is FlashInfer-Bench's description of a problem.
type definition struct {
	Name        string                    `json:"name"`
	Description string                    `json:"description"`
	Axes        map[string]definitionAxis `json:"axes"`
	Inputs      ordered[definitionTensor] `json:"inputs"`
	Outputs     ordered[definitionTensor] `json:"outputs"`
	Reference   string                    `json:"reference"`
	Constraints []string                  `json:"constraints"`
}

type definitionAxis struct {
	Type  string `json:"type"` // const or var
	Value int    `json:"value"`
}

type definitionTensor struct {
	Shape *[]string `json:"shape"` // null is a scalar
	DType string    `json:"dtype"`
}

// A workload is one line of FlashInfer-Bench's: sizes of the variable axes, and where inputs come from.
type workload struct {
	Definition string `json:"definition"`
	Workload   struct {
		UUID   string         `json:"uuid"`
		Axes   map[string]int `json:"axes"`
		Inputs map[string]struct {
			Type  string `json:"type"`
			Value any    `json:"value"`
		} `json:"inputs"`
	} `json:"workload"`
}

// ordered keeps the order of a JSON object: that of a function's parameters.
type ordered[T any] struct {
	names []string
	by    map[string]T
}

func (o *ordered[T]) UnmarshalJSON(text []byte) error {
	o.by = map[string]T{}
	if err := json.Unmarshal(text, &o.by); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return err
		}
		if name, ok := key.(string); ok && !slices.Contains(o.names, name) {
			o.names = append(o.names, name)
		}
	}
	return nil
}

// fromDefinition describes a FlashInfer-Bench definition, with its workloads as shapes.
func fromDefinition(file string, text []byte, more []string) (*draft, error) {
	var def definition
	if err := json.Unmarshal(text, &def); err != nil {
		return nil, usage.Errorf("%s is no FlashInfer-Bench definition: %w", file, err)
	}
	if def.Name == "" || len(def.Axes) == 0 || len(def.Inputs.names) == 0 || len(def.Outputs.names) == 0 || def.Reference == "" {
		return nil, usage.Errorf("%s is no FlashInfer-Bench definition: it needs name, axes, inputs, outputs and reference", file)
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(def.Axes)), def.Inputs.names, def.Outputs.names) {
		if !identifier.MatchString(name) {
			return nil, usage.Errorf("%s: %q is no name of an axis, an input or an output (write letters, digits and _)", file, name)
		}
	}
	workloads, err := readWorkloads(def.Name, more)
	if err != nil {
		return nil, err
	}
	d := &draft{kind: "a FlashInfer-Bench definition", name: nameOf(def.Name), mode: manifest.ModeCUDA, folder: filepath.Join("kernels", nameOf(def.Name))}
	d.line("version: 1\nname: %s", d.name)
	if def.Description != "" {
		d.line("description: %q", strings.Join(strings.Fields(def.Description), " "))
	}
	d.line("mode: cuda")
	d.guess("entry: "+entryOf(d.name), "the kernel's name")
	d.guess("source: kernel.cu", "a kernel in CUDA C++; Triton needs compiler: triton")
	d.guess("arch: [sm_80, sm_89, sm_90]", "the GPUs that it is for")
	d.line("flags: [-O3]")
	d.line("arguments:")
	var parameters []string
	for _, name := range def.Inputs.names {
		line, declared, why, err := def.argument(file, name, def.Inputs.by[name], "in", workloads)
		if err != nil {
			return nil, err
		}
		d.maybe(line, why)
		parameters = append(parameters, declared)
	}
	for _, name := range def.Outputs.names {
		line, declared, why, err := def.argument(file, name, def.Outputs.by[name], "out", workloads)
		if err != nil {
			return nil, err
		}
		d.maybe(line, why)
		parameters = append(parameters, declared)
	}
	axes := slices.Sorted(maps.Keys(def.Axes))
	for _, axis := range axes {
		if def.Axes[axis].Type == "var" && !slices.Contains(def.Inputs.names, axis) {
			d.guess(fmt.Sprintf("  - {name: %s, dtype: i32, access: scalar, value: %s}", axis, axis), "the kernel takes variable axes by value")
			parameters = append(parameters, "int "+axis)
		}
	}
	d.line("reference: {source: reference.py, entry: run}")
	d.guess("tolerance: {abs: 0.01, rel: 0.01}", "how far an element may be off")
	for _, c := range def.Constraints {
		d.line("# constraint: %s", strings.Join(strings.Fields(c), " "))
	}
	d.shapes(def, axes, workloads)
	first := def.Outputs.by[def.Outputs.names[0]]
	elements := "1"
	if first.Shape != nil && len(*first.Shape) > 0 {
		elements = strings.Join(*first.Shape, "*")
	}
	d.guess(fmt.Sprintf("launch: {grid: [\"ceildiv(%s, 256)\"], block: [256]}", elements), "one thread for each element of "+def.Outputs.names[0])
	d.file("reference.py", strings.TrimRight(def.Reference, "\n")+"\n")
	d.file("kernel.cu", fmt.Sprintf("// TODO: none, for a definition has no kernel. Write it here; the manifest's arguments are its parameters, in this order.\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_fp8.h>\n#include <stdint.h>\n\nextern \"C\" __global__ void %s(%s)\n{\n}\n", entryOf(d.name), strings.Join(parameters, ", ")))
	d.next = []string{"kernelgate policy lint .", "kernelgate check --static " + d.name}
	return d, nil
}

// entryOf is a name in C.
func entryOf(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' {
			return '_'
		}
		return r
	}, name)
}

// maybe adds a line, with what was guessed in it, if anything was.
func (d *draft) maybe(line, why string) {
	if why == "" {
		d.line("%s", line)
		return
	}
	d.guess(line, why)
}

var cudaTypes = map[manifest.DType]string{
	manifest.F64: "double", manifest.F32: "float", manifest.F16: "__half", manifest.BF16: "__nv_bfloat16", manifest.E4M3: "__nv_fp8_e4m3", manifest.E5M2: "__nv_fp8_e5m2", manifest.E2M1: "uint8_t",
	manifest.I64: "int64_t", manifest.I32: "int32_t", manifest.I16: "int16_t", manifest.I8: "int8_t", manifest.U8: "uint8_t", manifest.Bool: "bool",
}

// argument is the line of one tensor or scalar, and its declaration in CUDA.
func (def definition) argument(file, name string, t definitionTensor, access string, workloads []workload) (line, declared, why string, err error) {
	dtype, ok := dtypes[t.DType]
	if !ok {
		return "", "", "", usage.Errorf("%s: %s has the dtype %q, which manifests do not know", file, name, t.DType)
	}
	if t.Shape == nil && access == "out" {
		return "", "", "", usage.Errorf("%s: the output %s is a scalar, which manifests do not know (make its shape [1])", file, name)
	}
	if t.Shape == nil {
		value, why := "1", "its value"
		for _, w := range workloads {
			if in, ok := w.Workload.Inputs[name]; ok && in.Type == "scalar" {
				value, why = fmt.Sprint(in.Value), ""
				break
			}
		}
		if value == "true" || value == "false" {
			value = map[string]string{"true": "1", "false": "0"}[value]
		}
		return fmt.Sprintf("  - {name: %s, dtype: %s, access: scalar, value: %s}", name, dtype, value), cudaTypes[dtype] + " " + name, why, nil
	}
	for _, axis := range *t.Shape {
		if _, ok := def.Axes[axis]; !ok {
			return "", "", "", usage.Errorf("%s: %s has the axis %q, which axes do not list", file, name, axis)
		}
	}
	shape := strings.Join(*t.Shape, ", ")
	if shape == "" {
		shape = "1"
	}
	line = fmt.Sprintf("  - {name: %s, dtype: %s, access: %s, shape: [%s]}", name, dtype, access, shape)
	if integer(dtype) && access == "in" {
		line, why = fmt.Sprintf("  - {name: %s, dtype: %s, access: in, shape: [%s], init: 0..1}", name, dtype, shape), "the values that the kernel relies on"
	}
	for _, w := range workloads {
		if in := w.Workload.Inputs[name]; in.Type == "safetensors" {
			why = strings.TrimPrefix(why+"; the workloads' tensors are drawn instead of read from safetensors", "; ")
			break
		}
	}
	if access == "in" {
		return line, "const " + cudaTypes[dtype] + " *" + name, why, nil
	}
	return line, cudaTypes[dtype] + " *" + name, why, nil
}

// shapes are the workloads', or one that is guessed.
func (d *draft) shapes(def definition, axes []string, workloads []workload) {
	d.line("shapes:")
	sizes := func(given map[string]int) string {
		var all []string
		for _, axis := range axes {
			size := def.Axes[axis].Value
			if def.Axes[axis].Type == "var" {
				size = given[axis]
			}
			all = append(all, fmt.Sprintf("%s: %d", axis, size))
		}
		return strings.Join(all, ", ")
	}
	if len(workloads) == 0 {
		guessed := map[string]int{}
		for _, axis := range axes {
			guessed[axis] = 16
		}
		d.guess(fmt.Sprintf("  w1: {%s}", sizes(guessed)), "the sizes of the variable axes: no workloads were named")
		return
	}
	said := map[string]bool{}
	for i, w := range workloads {
		all := sizes(w.Workload.Axes)
		if said[all] || len(said) == maxShapes {
			continue
		}
		said[all] = true
		d.line("  w%d: {%s} # workload %s", i+1, all, strings.Join(strings.Fields(w.Workload.UUID), " "))
	}
}

// maxShapes is how many a manifest may have.
const maxShapes = 64

// readWorkloads reads those of a definition.
func readWorkloads(name string, files []string) ([]workload, error) {
	var all []workload
	for _, file := range files {
		text, err := results.ReadAtMost(file, maxInput)
		if err != nil {
			return nil, usage.Errorf("%w", err)
		}
		n := 0
		for line := range bytes.Lines(text) {
			n++
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			var w workload
			if err := json.Unmarshal(line, &w); err != nil {
				return nil, usage.Errorf("%s:%d: is no workload: %w", file, n, err)
			}
			if w.Definition != name {
				return nil, usage.Errorf("%s:%d: is a workload of %q, not of %q", file, n, w.Definition, name)
			}
			all = append(all, w)
		}
	}
	return all, nil
}
