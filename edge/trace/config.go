package trace

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/edge/untrusted"
)

// Load reads a TracingConfiguration, as kube-apiserver has it, and returns what makes
// spans of it and sends them.
func Load(file, instance string, gates featuregate.FeatureGate, logger klog.Logger) (tracing.TracerProvider, error) {
	if _, err := untrusted.YAML(file); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c, err := options.ReadTracingConfiguration(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if errs := tracingapi.ValidateTracingConfiguration(c, gates, nil); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", file, errs.ToAggregate())
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Error(err, "Failed to send traces") }))
	return tracing.NewProvider(context.Background(), c, nil, []resource.Option{resource.WithAttributes(
		attribute.String("service.name", "berth-scheduler"), attribute.String("service.instance.id", instance),
	)})
}
