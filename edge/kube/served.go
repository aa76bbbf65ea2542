package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// servedTimeout is how long CheckServed waits for an answer.
const servedTimeout = 10 * time.Second

// CheckServed returns an error if one of the kinds is defined by a CustomResourceDefinition
// that the API server of config does not have. It returns nil if the API server does not
// say.
func CheckServed(ctx context.Context, config *rest.Config, kinds []object.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	for _, kind := range kinds {
		if !decode.Named(kind.String()).Custom() {
			continue
		}
		client, err := customClient(rest.CopyConfig(config), kind)
		if err != nil {
			return err
		}
		body, err := client.Get().MaxRetries(0).DoRaw(ctx)
		var list metav1.APIResourceList
		if err == nil && (json.Unmarshal(body, &list) != nil || list.Kind != "APIResourceList" ||
			slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource() })) {
			continue
		}
		if err == nil || apierrors.IsNotFound(err) {
			return fmt.Errorf("the API server does not serve %s of %s, which a plugin of the configuration reads; install them first: kubectl apply -f deploy/%s.yaml", kind.Resource(), kind.GroupVersion(), kind.Resource())
		}
	}
	return nil
}
