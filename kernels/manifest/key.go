package manifest

import (
	"path"
	"strings"
)

// FileName is the manifest's name in a kernel's folder. Where a folder has several
// kernels, each of them, or each but one, has a manifest NAME.kernel.yaml.
const FileName = "kernel.yaml"

// IsManifest tells by its name whether a file is a manifest.
func IsManifest(file string) bool {
	name := path.Base(file)
	own, named := strings.CutSuffix(name, "."+FileName)
	return name == FileName || named && own != ""
}

// KeyOf is what the kernel of a manifest is known by, from the repository's root: its
// folder, or the manifest itself where that has a name of its own. No two manifests have
// one key, whatever their folders are called.
func KeyOf(file string) string {
	if folder := path.Dir(file); path.Base(file) == FileName && !IsManifest(folder) {
		return folder
	}
	return file
}

// FileOf is the manifest of the kernel that a key stands for.
func FileOf(key string) string {
	if IsManifest(key) {
		return key
	}
	return key + "/" + FileName
}

// FolderOf is the folder that the kernel's manifest lies in.
func FolderOf(key string) string { return path.Dir(FileOf(key)) }
