// Command bundle makes the page that `berth view` serves: edge/page/assets, of the sources in web. It
// needs nothing but Go: the dependencies are in web/vendor, with the checksums of their packages. With
// -check it writes nothing, and fails if the assets are not those of the sources.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	check := flag.Bool("check", false, "fail if the assets are not those of the sources")
	flag.Parse()
	if err := run(os.DirFS(".."), "..", *check); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// assets is the folder that the page is written to, below the root.
const assets = "edge/page/assets"

func run(root fs.FS, dir string, check bool) error {
	if err := checkVendored(root); err != nil {
		return err
	}
	files, err := bundle(root, filepath.Join(dir, "web"))
	if err != nil {
		return err
	}
	for name, body := range files {
		path := filepath.Join(dir, assets, name)
		if !check {
			err = os.WriteFile(path, body, 0o644)
		} else if is, failed := os.ReadFile(path); failed != nil || !bytes.Equal(is, body) {
			err = fmt.Errorf("%s/%s is not that of web; run \"make page\"", assets, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// packages are the vendored ones, by the names that sources import.
var packages = map[string]string{
	"preact":               "preact/dist/preact.module.js",
	"preact/hooks":         "preact/hooks/dist/hooks.module.js",
	"@preact/signals":      "signals/dist/signals.module.js",
	"@preact/signals-core": "signals-core/dist/signals-core.module.js",
}

// bundle returns the files of the page.
func bundle(root fs.FS, web string) (map[string][]byte, error) {
	web, err := filepath.Abs(web)
	if err != nil {
		return nil, err
	}
	alias := map[string]string{}
	for name, file := range packages {
		alias[name] = filepath.Join(web, "vendor", filepath.FromSlash(file))
	}
	made := api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(web, "src", "main.tsx"), filepath.Join(web, "src", "page.css")}, EntryNames: "[name]",
		Bundle: true, Outdir: web, AbsWorkingDir: web, Alias: alias, Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXTransform, JSXFactory: "h", JSXFragment: "Fragment",
		Banner: map[string]string{"js": "/* Berth's page, made of web/. Licences of what is in it: licenses.txt */"},
	})
	if len(made.Errors) > 0 {
		return nil, errors.New(strings.Join(api.FormatMessages(made.Errors, api.FormatMessagesOptions{}), ""))
	}
	files := map[string][]byte{}
	for _, f := range made.OutputFiles {
		files[strings.Replace(filepath.Base(f.Path), "main.", "page.", 1)] = f.Contents
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		if files[name], err = fs.ReadFile(root, "web/src/"+name); err != nil {
			return nil, err
		}
	}
	files["licenses.txt"], err = licenses(root)
	return files, err
}

// licenses returns those of the packages, in one text.
func licenses(root fs.FS) ([]byte, error) {
	paths, err := fs.Glob(root, "web/vendor/*/LICENSE")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, path := range paths {
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s\n\n%s\n", strings.Split(path, "/")[2], text)
	}
	return b.Bytes(), nil
}

// checkVendored compares the files of web/vendor with the list of their checksums.
func checkVendored(root fs.FS) error {
	list, err := fs.ReadFile(root, "web/vendor/SHA256SUMS")
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		sums[name] = sum
	}
	err = fs.WalkDir(root, "web/vendor", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, "web/vendor/")
		if err != nil || d.IsDir() || name == "SHA256SUMS" || name == "README.md" {
			return err
		}
		body, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(body)); sums[name] != sum {
			return fmt.Errorf("%s: its checksum is %s, not that of web/vendor/SHA256SUMS", path, sum)
		}
		delete(sums, name)
		return nil
	})
	for name := range sums {
		err = errors.Join(err, fmt.Errorf("web/vendor/%s: is not there", name))
	}
	return err
}
