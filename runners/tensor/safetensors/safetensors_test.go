package safetensors_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/runners/tensor/safetensors"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors/safetensorstest"
)

func file(header string, body int) []byte {
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(data, header...), make([]byte, body)...)
}

func TestParse(t *testing.T) {
	tensors := []safetensors.Tensor{
		{Name: "b", DType: "F16", Shape: []int{2, 3}, Data: []byte("abcdefghijkl")},
		{Name: "none", DType: "F32", Shape: []int{4, 0}, Data: []byte{}},
		{Name: "a", DType: "I64", Shape: []int{}, Data: []byte("12345678")},
	}
	f, err := safetensors.Parse(safetensorstest.Write(t, map[string]string{"scale": "0.5"}, tensors...))
	if err != nil {
		t.Fatal(err)
	}
	want := &safetensors.File{Tensors: tensors, Metadata: map[string]string{"scale": "0.5"}}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	if _, ok := f.Tensor("c"); ok {
		t.Error("there is a tensor that is not in the file")
	}
	// The bytes of one tensor cannot be appended to over those of the next.
	first, _ := f.Tensor("b")
	_ = append(first.Data, 'X')
	if last, _ := f.Tensor("a"); string(last.Data) != "12345678" {
		t.Error("one tensor's bytes reach into the next")
	}
}

func TestRefused(t *testing.T) {
	const a = `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	for _, e := range []struct {
		data []byte
		want string
	}{
		{nil, "0 bytes are no safetensors file"},
		{file("", 0), "the header is no JSON object"},
		{file(`[]`, 0), "the header is no JSON object"},
		{append(binary.LittleEndian.AppendUint64(nil, 1<<63), '{'), "the header has 9223372036854775808 bytes"},
		{append(binary.LittleEndian.AppendUint64(nil, safetensors.MaxHeader+1), make([]byte, safetensors.MaxHeader+1)...), "at most 1048576 are read"},
		{file(`{`+a+`,`+a+`}`, 8), `the header has "a" twice`},
		{file(`{"a":{"dtype":"F32","dtype":"F16","shape":[2],"data_offsets":[0,8]}}`, 8), `the header has "dtype" twice`},
		{file(`{`+a+`}{}`, 8), "the header goes on after its end"},
		{file(`{`+a+`,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), `tensor "b" begins at byte 4, within the tensor before it`},
		{file(`{`+a+`,"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), `tensor "b" begins at byte 0, within`},
		{file(`{`+a+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`, 16), "bytes 8 to 12 belong to no tensor"},
		{file(`{`+a+`}`, 9), "bytes 8 to 9 belong to no tensor"},
		{file(`{`+a+`}`, 7), "bytes 0 to 8 of 7 are not those of F32[2]"},
		{file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), "are not those of"},
		{file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}}`, 8), "are not those of"},
		{file(`{"a":{"dtype":"F32","shape":[2147483647,2147483647,2147483647,4],"data_offsets":[0,8]}}`, 8), "are not those of"},
		{file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}`, 8), "axis 0 has 4294967296 entries"},
		{file(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8), "no JSON of a safetensors file"},
		{file(`{"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}}`, 8), "no JSON of a safetensors file"},
		{file(`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, 8), "a shape is a list"},
		{file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}}`, 8), "data_offsets has 1 numbers"},
		{file(`{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1), `the format "F4" is not read`},
		{file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}}`, 8), "no JSON of a safetensors file"},
		{file(`{"a":3}`, 0), "the header has no JSON object for it"},
		{file(`{"":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), "a name has 1 to 256 characters"},
		{file(`{"__metadata__":{"a":1}}`, 0), "no JSON of a safetensors file"},
		{file(`{"a" 1}`, 0), "the header is no JSON"},
	} {
		f, err := safetensors.Parse(e.data)
		if err == nil || !strings.Contains(err.Error(), e.want) {
			t.Errorf("%.80q: %v, want %s", e.data, err, e.want)
		}
		if err != nil && f != nil && f.Tensors != nil && strings.Contains(err.Error(), "no JSON object") {
			t.Errorf("%.80q: refused and returned", e.data)
		}
	}
}

// Whatever the bytes, Parse does not panic; what it accepts covers the file exactly, and is the same when it is written again.
func FuzzParse(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}`, 9))
	f.Add(file(`{"__metadata__":{"x":"y"},"a":{"dtype":"BF16","shape":[0,7],"data_offsets":[0,0]}}`, 0))
	f.Add(file(`{"a":{"dtype":"F32","shape":[2147483647,2147483647,0],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := safetensors.Parse(data)
		if err != nil {
			return
		}
		total := 0
		for _, tensor := range got.Tensors {
			n := tensor.DType.Size()
			for _, axis := range tensor.Shape {
				n *= axis
			}
			if n != len(tensor.Data) {
				t.Fatalf("%d bytes of %s%v", len(tensor.Data), tensor.DType, tensor.Shape)
			}
			total += n
		}
		if want := len(data) - 8 - int(binary.LittleEndian.Uint64(data)); total != want {
			t.Fatalf("the tensors have %d of %d bytes", total, want)
		}
		again, err := safetensors.Parse(safetensorstest.Write(t, got.Metadata, got.Tensors...))
		if err != nil {
			t.Fatal(err)
		}
		if len(again.Tensors) != len(got.Tensors) {
			t.Fatalf("%d tensors, and %d when written again", len(got.Tensors), len(again.Tensors))
		}
	})
}
