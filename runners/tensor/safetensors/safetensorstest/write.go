// Package safetensorstest writes safetensors files for tests.
package safetensorstest

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/kernelgate/kernelgate/runners/tensor/safetensors"
)

// Write returns a file with the tensors in their order.
func Write(t testing.TB, metadata map[string]string, tensors ...safetensors.Tensor) []byte {
	t.Helper()
	header, body := map[string]any{}, []byte{}
	if metadata != nil {
		header["__metadata__"] = metadata
	}
	for _, tensor := range tensors {
		shape := tensor.Shape
		if shape == nil {
			shape = []int{}
		}
		header[tensor.Name] = map[string]any{"dtype": tensor.DType, "shape": shape, "data_offsets": []int{len(body), len(body) + len(tensor.Data)}}
		body = append(body, tensor.Data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), body...)
}
