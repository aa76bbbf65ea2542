package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user that a container runs as, of those that have a name.
const nobody = "65532"

// image writes image/, an OCI layout of berth-scheduler for all architectures.
// There is no base: the program is static, and beside it stand the authorities
// that browsers trust, for extenders, and the name of its user.
func (r *release) image(p programs) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range r.arches {
		image, err := r.imageFor(p, arch)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	// A layout lists what is in it: one index, which a push gives its name.
	all := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index,
		Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version}}})
	_, err := layout.Write(r.name("image"), all)
	return err
}

func (r *release) imageFor(p programs, arch string) (v1.Image, error) {
	program, err := os.ReadFile(p.path(arch, scheduler))
	if err != nil {
		return nil, err
	}
	content, err := pack([]file{
		{name: "usr/local/bin/" + scheduler, mode: 0o755, body: program},
		// The name that manifests for kube-scheduler call.
		{name: "usr/local/bin/kube-scheduler", link: scheduler},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, body: authorities()},
		{name: "etc/passwd", mode: 0o644, body: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, body: []byte("root:x:0:\nnonroot:x:65532:\n")},
	}, r.made)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, r.configured(image, arch))
}

// configured says how the image is run.
func (r *release) configured(image v1.Image, arch string) *v1.ConfigFile {
	config, err := image.ConfigFile()
	if err != nil {
		panic(err) // it was made in memory
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.made}
	config.History = []v1.History{{CreatedBy: "make release", Created: v1.Time{Time: r.made}}}
	config.Config = v1.Config{
		User: nobody + ":" + nobody, WorkingDir: "/", Entrypoint: []string{"/usr/local/bin/" + scheduler},
		Env: []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{
			"org.opencontainers.image.title": scheduler, "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.source": "https://" + module, "org.opencontainers.image.licenses": "Apache-2.0",
		},
		ExposedPorts: map[string]struct{}{"10259/tcp": {}},
	}
	return config
}

// authorities are the certificates that Mozilla trusts, as the Go module has them.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
	}
	return out.Bytes()
}
