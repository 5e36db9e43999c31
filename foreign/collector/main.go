// The OTLP receiver of the OpenTelemetry collector, in front of a pipeline that a test commands.
//
//	collector CONFIG
//
// It takes the `receivers` of a collector's configuration. Logs that it takes are lines of OTLP JSON on standard output; for those
// that it does not take there is a line `refused`. A line on standard input says what the pipeline does from now on, and is answered by
// the same line:
//
//	take           it takes logs
//	fail           its exporter does not reach its server at present
//	refuse TEXT    its exporter takes no request with this text, now or later
//	limit          its memory limiter has no room, and asks for a second
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	meters "go.opentelemetry.io/otel/metric/noop"
	tracers "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// pipeline is what stands behind the receiver.
type pipeline struct {
	lock    sync.Mutex
	command string
}

// host has no extensions.
type host struct{}

func (host) GetExtensions() map[component.ID]component.Component { return nil }

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	ctx := context.Background()
	factory := otlpreceiver.NewFactory()
	config, err := read(file, factory)
	if err != nil {
		return err
	}
	pipeline := &pipeline{command: "take"}
	logs, err := consumer.NewLogs(pipeline.consume)
	if err != nil {
		return err
	}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: component.TelemetrySettings{
		Logger:         zap.NewNop(),
		TracerProvider: tracers.NewTracerProvider(),
		MeterProvider:  meters.NewMeterProvider(),
		Resource:       pcommon.NewResource(),
	}}
	receiver, err := factory.CreateLogs(ctx, settings, config, logs)
	if err != nil {
		return err
	}
	if err := receiver.Start(ctx, host{}); err != nil {
		return err
	}
	fmt.Println("listening")
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		pipeline.obey(commands.Text())
	}
	return receiver.Shutdown(ctx)
}

func read(file string, factory receiver.Factory) (component.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	retrieved, err := confmap.NewRetrievedFromYAML(text)
	if err != nil {
		return nil, err
	}
	whole, err := retrieved.AsConf()
	if err != nil {
		return nil, err
	}
	own, err := whole.Sub("receivers::otlp")
	if err != nil {
		return nil, err
	}
	config := factory.CreateDefaultConfig()
	return config, own.Unmarshal(config)
}

func (p *pipeline) obey(command string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.command = command
	fmt.Println(command)
}

func (p *pipeline) consume(_ context.Context, logs plog.Logs) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	text, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
	if err != nil {
		return err
	}
	if err := p.refusal(string(text)); err != nil {
		fmt.Println("refused")
		return err
	}
	fmt.Println(string(text))
	return nil
}

func (p *pipeline) refusal(text string) error {
	verb, rest, _ := strings.Cut(p.command, " ")
	switch {
	case verb == "fail":
		return errors.New("the exporter's server does not answer")
	case verb == "refuse" && strings.Contains(text, rest):
		return consumererror.NewPermanent(errors.New("the exporter's server takes no such thing"))
	case verb == "limit":
		return limited()
	}
	return nil
}

func limited() error {
	wait := &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)}
	limited, err := status.New(codes.ResourceExhausted, "no memory is left").WithDetails(wait)
	if err != nil {
		return err
	}
	return limited.Err()
}
