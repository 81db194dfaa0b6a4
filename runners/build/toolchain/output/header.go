package output

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// missing matches what gcc, clang and nvcc's front end say about a header that they cannot find.
var missing = regexp.MustCompile(`^(?:cannot open source file )?['"]?([\w./+-]+)['"]?(?:: No such file or directory| file not found)?$`)

// librarySets are the first words of headers that come with a library instead of the compiler, by the name that a set of
// headers usually has.
var librarySets = map[string][]string{
	"cublas":   {"cublas"},
	"curand":   {"curand"},
	"cufft":    {"cufft"},
	"cusparse": {"cusparse"},
	"cusolver": {"cusolver"},
	"cudnn":    {"cudnn"},
	"nccl":     {"nccl"},
	"nvshmem":  {"nvshmem"},
	"cutlass":  {"cutlass/", "cute/"},
	"torch":    {"torch/", "ATen/", "c10/"},
}

// headerRemedy says what to do about an error message that names a missing header; "" if the message is about something
// else.
func headerRemedy(message string) string {
	if !strings.HasPrefix(message, "cannot open source file") && !strings.HasSuffix(message, "No such file or directory") && !strings.HasSuffix(message, "file not found") {
		return ""
	}
	m := missing.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	header := m[1]
	for set, words := range librarySets {
		for _, word := range words {
			if strings.HasPrefix(header, word) {
				return fmt.Sprintf("write include: [<%s>] in the manifest, and give the runner the headers of that library: --include %s=FOLDER, or runner.includes in the bot's configuration", set, set)
			}
		}
	}
	if path.Ext(header) == "" && !strings.Contains(header, "/") || path.IsAbs(header) {
		return "" // a header of the C++ library, or a path of one machine: no folder helps
	}
	return "add its folder to include in the manifest (a path from the root of the repository), or <NAME> for a set of headers on the runner"
}
