package manifest

import (
	"path"
	"strings"
)

// FileName is the manifest's name in a kernel's folder. Where a folder has several
// kernels, each of them, or each but one, has a manifest NAME.kernel.yaml.
const FileName = "kernel.yaml"

// IsManifest reports whether a file is a manifest, by its name.
func IsManifest(file string) bool {
	name := path.Base(file)
	own, named := strings.CutSuffix(name, "."+FileName)
	return name == FileName || named && own != ""
}

// KeyOf returns the key of a manifest's kernel, from the repository's root: its folder, or the
// manifest itself if it is a NAME.kernel.yaml. No two manifests have the same key.
func KeyOf(file string) string {
	if folder := path.Dir(file); path.Base(file) == FileName && !IsManifest(folder) {
		return folder
	}
	return file
}

// FileOf returns the manifest of the kernel with a key.
func FileOf(key string) string {
	if IsManifest(key) {
		return key
	}
	return key + "/" + FileName
}

// FolderOf returns the folder of the kernel's manifest.
func FolderOf(key string) string { return path.Dir(FileOf(key)) }
