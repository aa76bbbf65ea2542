package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// servedTimeout is how long CheckServed waits for an answer.
const servedTimeout = 10 * time.Second

// CheckServed returns an error that names those of the kinds that need a
// CustomResourceDefinition which the API server of config does not have; nil if it has all.
// Kinds without a CustomResourceDefinition count as served, and so do those about which the API
// server gives no clear answer.
func CheckServed(ctx context.Context, config *rest.Config, kinds []object.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	var absent []object.Kind
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
			absent = append(absent, kind)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	var names []string
	install := "kubectl apply"
	for _, kind := range absent {
		names = append(names, fmt.Sprintf("%s of %s", kind.Resource(), kind.GroupVersion()))
		install += fmt.Sprintf(" -f deploy/%s.yaml", kind.Resource())
	}
	return fmt.Errorf("the API server does not serve %s, which plugins of the configuration read; install them first: %s", strings.Join(names, " and "), install)
}
