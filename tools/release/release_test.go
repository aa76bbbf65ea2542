package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// Two builds of the same source in different folders give the same bytes: every
// archive, the image, the bills, the checksums. What they hold is what a release
// is to hold.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Berth twice")
	}
	here, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	first := made(t, here)
	second := made(t, copied(t, here))
	one, two := content(t, first), content(t, second)
	if !reflect.DeepEqual(slices.Sorted(maps.Keys(one)), slices.Sorted(maps.Keys(two))) {
		t.Fatalf("files %q and %q", slices.Sorted(maps.Keys(one)), slices.Sorted(maps.Keys(two)))
	}
	for name := range one {
		if one[name] != two[name] {
			t.Errorf("%s differs between two builds", name)
		}
	}

	arch := runtime.GOARCH
	for _, name := range []string{"SHA256SUMS", "berth.yaml", "berth-scheduler-1.2.3-test.tgz", "berth_v1.2.3-test_linux_" + arch + ".tar.gz", "image/index.json"} {
		if one[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	if sums := strings.Count(one["SHA256SUMS"], "\n"); sums != len(one)-1 {
		t.Errorf("%d checksums of %d files", sums, len(one)-1)
	}
	for name, want := range map[string][]string{
		"berth_v1.2.3-test_linux_" + arch + ".tar.gz": {"berth", "berth-scheduler", "LICENSE", "deploy/static-pod.yaml", "completions/_berth",
			"completions/berth.bash", "completions/berth.fish", "man/man1/berth.1", "man/man1/berth-simulate.1", "man/man1/berth-scheduler.1"},
		"berth-scheduler-1.2.3-test.tgz": {"Chart.yaml", "values.yaml", "templates/deployment.yaml", "monitoring/rules.yaml"},
	} {
		checkArchive(t, name, one[name], want)
	}
	checkBill(t, one["berth-scheduler_v1.2.3-test_linux_"+arch+".cdx.json"])
	checkImage(t, filepath.Join(first, "image"), arch)
}

// made is the folder of a release of a source, for this architecture only.
func made(t *testing.T, source string) string {
	t.Helper()
	r := release{source: source, out: filepath.Join(t.TempDir(), "dist"), version: "v1.2.3-test", made: time.Unix(1e9, 0).UTC(), arches: []string{runtime.GOARCH}}
	if err := r.run(""); err != nil {
		t.Fatal(err)
	}
	return r.out
}

// copied is another folder with the same source.
func copied(t *testing.T, source string) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", ":!lab", ":!tools", ":!docs")
	list.Dir = source
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "elsewhere")
	for name := range strings.Lines(string(names)) {
		name = strings.TrimSpace(name)
		body, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(target, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return target
}

func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(p)
		name, _ := filepath.Rel(dir, p)
		files[filepath.ToSlash(name)] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// An archive is whole, and has the files in a folder of their own.
func checkArchive(t *testing.T, name, data string, want []string) {
	t.Helper()
	plain, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	files := untar(t, plain)
	for _, w := range want {
		found := false
		for path, f := range files { // any order
			_, inside, _ := strings.Cut(path, "/")
			found = found || inside == w && len(f.body) > 0
		}
		if !found {
			t.Errorf("%s has no %s", name, w)
		}
	}
	for path, f := range files { // any order
		if strings.HasSuffix(path, "/Chart.yaml") && !strings.Contains(string(f.body), "version: 1.2.3-test\nappVersion: v1.2.3-test\n") {
			t.Errorf("the chart is\n%s", f.body)
		}
	}
}

// What is packed comes out as it was, to the last byte.
func TestPack(t *testing.T) {
	data, err := pack([]file{{name: "b/c", mode: 0o755, body: []byte("text")}, {name: "a", link: "b/c"}}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = squeeze(data); err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, plain)
	if len(files) != 3 || string(files["b/c"].body) != "text" || files["a"].link != "b/c" {
		t.Errorf("files %v", files)
	}
}

// The bill names the program, its hash, the standard library and each module
// with a version.
func checkBill(t *testing.T, text string) {
	t.Helper()
	var bill cdx.BOM
	if err := json.Unmarshal([]byte(text), &bill); err != nil {
		t.Fatal(err)
	}
	kubernetes, _, err := librariesVersion(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, c := range *bill.Components {
		if c.Version == "" || c.PackageURL == "" {
			t.Errorf("%s has no version", c.Name)
		}
		versions[c.Name] = c.Version
	}
	if strings.Replace(versions["k8s.io/client-go"], "v0.", "v1.", 1) != kubernetes || versions["std"] != runtime.Version() {
		t.Errorf("modules %v", versions)
	}
	if main := bill.Metadata.Component; main.Name != "berth-scheduler" || main.Version != "v1.2.3-test" || len(*main.Hashes) != 1 {
		t.Errorf("program %+v", main)
	}
}

// The image is a valid OCI layout whose program is static, belongs to nobody
// and is run by nobody, and answers to kube-scheduler's name too.
func checkImage(t *testing.T, dir, arch string) {
	t.Helper()
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := all.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(images.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if p := images.Manifests[0].Platform; p.OS != "linux" || p.Architecture != arch || config.Architecture != arch {
		t.Errorf("platform %v", p)
	}
	if config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/usr/local/bin/berth-scheduler" {
		t.Errorf("runs %q as %q", config.Config.Entrypoint, config.Config.User)
	}
	files := unpack(t, image)
	program, err := elf.NewFile(bytes.NewReader(files["usr/local/bin/berth-scheduler"].body))
	if err != nil {
		t.Fatal(err)
	}
	if needed, err := program.ImportedLibraries(); err != nil || len(needed) > 0 {
		t.Errorf("program needs %q: %v", needed, err)
	}
	if link := files["usr/local/bin/kube-scheduler"].link; link != "berth-scheduler" {
		t.Errorf("kube-scheduler leads to %q", link)
	}
	if n := bytes.Count(files["etc/ssl/certs/ca-certificates.crt"].body, []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("%d authorities", n)
	}
}

func unpack(t *testing.T, image v1.Image) map[string]file {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	return untar(t, content)
}

// untar reads an archive to its end.
func untar(t *testing.T, content io.Reader) map[string]file {
	t.Helper()
	files := map[string]file{}
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if err == io.EOF {
			if _, err := io.Copy(io.Discard, content); err != nil { // the end of what it is packed in
				t.Error(err)
			}
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Mode&0o022 != 0 && h.Typeflag != tar.TypeSymlink {
			t.Errorf("%s can be written by others than root", h.Name)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = file{name: h.Name, body: body, link: h.Linkname}
	}
}

// A help becomes a page that roff shows as it is.
func TestHelpBecomesAPage(t *testing.T) {
	got := string(page("berth-why", "Say why\n.hidden\n'quoted' \\ --flag\n", time.Unix(0, 0).UTC()))
	want := ".TH BERTH-WHY 1 1970-01-01 Berth\n.SH NAME\nberth-why \\- Say why\n.SH DESCRIPTION\n.nf\nSay why\n\\&.hidden\n\\&'quoted' \\e \\-\\-flag\n.fi\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}
