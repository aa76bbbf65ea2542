package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"
)

// file is a file of an archive.
type file struct {
	name string
	mode int64
	body []byte
	link string // of a symbolic link: where it leads
}

// pack is a tar archive of the files, in the order of their names, with the
// folders that they are in.
func pack(files []file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	sort.Slice(files, func(i, j int) bool { return files[i].name < files[j].name })
	folders := map[string]bool{".": true}
	for _, f := range files {
		for _, dir := range parents(f.name) {
			if !folders[dir] {
				folders[dir] = true
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: made, Format: tar.FormatPAX}); err != nil {
					return nil, err
				}
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.body)), ModTime: made, Format: tar.FormatPAX}
		if f.link != "" {
			header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, f.link, 0o777
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// parents are the folders above a file, the outermost first.
func parents(name string) []string {
	var dirs []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

func squeeze(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeArchive writes files as a .tar.gz.
func (r *release) writeArchive(name string, files []file) error {
	data, err := pack(files, r.made)
	if err != nil {
		return err
	}
	if data, err = squeeze(data); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// archives writes one archive an architecture: the programs, how to use them,
// the manifests and the licence.
func (r *release) archives(p programs) error {
	arch, err := r.own()
	if err != nil {
		return err
	}
	shared, err := guides(p, arch, r.made)
	if err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "SECURITY.md", "deploy/rbac.yaml", "deploy/flowcontrol.yaml", "deploy/deployment.yaml",
		"deploy/kustomization.yaml", "deploy/static-pod.yaml", "deploy/spread.yaml", "deploy/pack.yaml"} {
		body, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return err
		}
		shared = append(shared, file{name: name, mode: 0o644, body: body})
	}
	for _, arch := range r.arches {
		files := slices.Clone(shared)
		for _, program := range []string{tool, scheduler} {
			body, err := os.ReadFile(p.path(arch, program))
			if err != nil {
				return err
			}
			files = append(files, file{name: program, mode: 0o755, body: body})
		}
		base := r.archive(arch)
		for i := range files {
			files[i].name = base + "/" + files[i].name
		}
		if err := r.writeArchive(r.name("%s.tar.gz", base), files); err != nil {
			return err
		}
	}
	return nil
}

// archive is the name of the archive of an architecture, and of the folder in it.
func (r *release) archive(arch string) string {
	return fmt.Sprintf("berth_%s_linux_%s", r.version, arch)
}

// chart writes the chart as helm packs it, with the release's version.
func (r *release) chart() error {
	version := strings.TrimPrefix(r.version, "v")
	var files []file
	root := filepath.Join(r.source, "deploy", "chart")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if name == "Chart.yaml" {
			body = bytes.Replace(body, []byte("version: 0.0.0 # a release sets it"), []byte("version: "+version), 1)
			body = bytes.Replace(body, []byte("appVersion: latest"), []byte("appVersion: "+r.version), 1)
		}
		files = append(files, file{name: scheduler + "/" + filepath.ToSlash(name), mode: 0o644, body: body})
		return err
	})
	if err != nil {
		return err
	}
	return r.writeArchive(r.name("%s-%s.tgz", scheduler, version), files)
}

// checksums writes SHA256SUMS: a line for each file of the release.
func (r *release) checksums() error {
	var sums strings.Builder
	err := filepath.WalkDir(r.out, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		hash := sha256.New()
		if _, err := io.Copy(hash, f); err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, p)
		fmt.Fprintf(&sums, "%x  %s\n", hash.Sum(nil), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(r.name("SHA256SUMS"), []byte(sums.String()), 0o644)
}
