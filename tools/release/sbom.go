package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bills writes what is in each program, read from the program itself.
func (r *release) bills(p programs) error {
	for _, arch := range r.arches {
		for _, program := range []string{tool, scheduler} {
			bill, err := r.bill(p.path(arch, program), program)
			if err != nil {
				return err
			}
			if err := write(r.name("%s_%s_linux_%s.cdx.json", program, r.version, arch), bill); err != nil {
				return err
			}
		}
	}
	return nil
}

func write(name string, bill *cdx.BOM) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// bill lists the modules of a program, the standard library first.
func (r *release) bill(path, program string) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	main := component(module, r.version)
	main.Type, main.Name = cdx.ComponentTypeApplication, program
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(body))}}
	std := component("std", info.GoVersion)
	components, needs := []cdx.Component{std}, []string{std.BOMRef}
	for _, m := range info.Deps {
		c := component(actual(m).Path, actual(m).Version)
		components, needs = append(components, c), append(needs, c.BOMRef)
	}
	bill := cdx.NewBOM()
	bill.Metadata = &cdx.Metadata{Timestamp: r.made.Format(time.RFC3339), Component: &main}
	bill.Components = &components
	bill.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	return bill, nil
}

// actual is the module that takes another's place, where one does.
func actual(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

func component(path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, PackageURL: url, Name: path, Version: version}
}
