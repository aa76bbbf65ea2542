package cluster

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/deploy"
)

//go:embed kwok.yaml
var kwokRBAC []byte

// applyRBAC gives Berth and kwok their rights, and Berth its priority.
func (c *Cluster) applyRBAC(ctx context.Context) error {
	return c.Apply(ctx, deploy.RBAC, deploy.FlowControl, kwokRBAC)
}

// Apply applies the objects of manifests.
func (c *Cluster) Apply(ctx context.Context, manifests ...[]byte) error {
	for _, manifest := range manifests {
		if err := c.apply(ctx, manifest); err != nil {
			return err
		}
	}
	return nil
}

// apply applies the objects of a manifest. Their resource is guessed from their
// kind, which is right for all that the lab applies.
func (c *Cluster) apply(ctx context.Context, manifest []byte) error {
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue // comments only
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		_, err = client.Resource(resource).Namespace(object.GetNamespace()).
			Apply(ctx, object.GetName(), &object, metav1.ApplyOptions{FieldManager: "berth-lab", Force: true})
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}
