package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/registrar-dev/registrar/api-server/client"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

var deliveriesCommand = command{
	name: "deliveries", args: "ENDPOINT", summary: "List the latest deliveries to a webhook URL",
	about: `
Lists the deliveries to the URL of a WebhookEndpoint, newest first, with what became of the last attempt. They are asked of the partner API
with a key of the organization, which needs the scope webhooks:read.`,
	flags: func(flags *pflag.FlagSet, o *options) {
		partnerFlags(flags, o)
		flags.StringVar(&o.status, "status", "", "only those with this status, such as pending or declined,exhausted")
	},
	run: listDeliveries, kinds: []string{kindEndpoint},
}

// partnerFlags are those of commands that call the partner API.
func partnerFlags(flags *pflag.FlagSet, o *options) {
	flags.StringVar(&o.url, "url", "", "where Registrar's partner API is, such as https://registrar.example; without it $REGISTRAR_URL")
	flags.StringVar(&o.apiKeyFrom, "api-key-from", "", "ApiKey of the namespace whose Secret has the key; without it $REGISTRAR_API_KEY")
	flags.IntVar(&o.limit, "limit", 20, "how many, 200 at most")
}

// partner makes a client of the partner API.
func (s *session) partner(ctx context.Context) (*api.ClientWithResponses, error) {
	url, key := cmp.Or(s.url, s.getenv("REGISTRAR_URL")), s.getenv("REGISTRAR_API_KEY")
	if url == "" || key == "" && s.apiKeyFrom == "" {
		return nil, errors.New("this is asked of the partner API: say where it is (--url https://registrar.example, or REGISTRAR_URL), and with which key of the organization (--api-key-from, an ApiKey of the namespace, or REGISTRAR_API_KEY)")
	}
	if s.apiKeyFrom != "" {
		o, err := s.get(ctx, kindKey, s.apiKeyFrom)
		if err != nil {
			return nil, err
		}
		name := text(o, "status", "secretName")
		if name == "" {
			return nil, fmt.Errorf("%s has no Secret yet; kubectl registrar explain %[1]s says why", title(o))
		}
		if key, err = s.secret(ctx, name, v1beta1.APIKeySecretKey); err != nil {
			return nil, err
		}
	}
	return api.New(url, key)
}

func listDeliveries(ctx context.Context, s *session, args []string) error {
	name, err := one(args, "WebhookEndpoint")
	if err != nil {
		return err
	}
	o, err := s.get(ctx, kindEndpoint, name)
	if err != nil {
		return err
	}
	id := number(o, "status", "endpointID")
	if id == 0 {
		return fmt.Errorf("%s has no URL yet; kubectl registrar explain %[1]s says why", title(o))
	}
	partner, err := s.partner(ctx)
	if err != nil {
		return err
	}
	params := &api.ListWebhookDeliveriesParams{Limit: &s.limit}
	if s.status != "" {
		params.Status = &s.status
	}
	answer, err := partner.ListWebhookDeliveriesWithResponse(ctx, int(id), params)
	if err != nil {
		return err
	}
	if answer.JSON200 == nil {
		return fmt.Errorf("%s answered %s; is it Registrar's partner API?", answer.HTTPResponse.Request.URL.Host, answer.Status())
	}
	if printed, err := s.print(answer.JSON200); printed {
		return err
	}
	if ready := meta.FindStatusCondition(conditions(o), "Ready"); ready != nil {
		fmt.Fprintf(s.stdout, "%s: %s. %s\n%d deliveries wait; %d attempts in a row have failed.\n\n", text(o, "spec", "url"), ready.Reason, ready.Message,
			number(o, "status", "backlog"), number(o, "status", "consecutiveFailures"))
	}
	rows := make([][]string, 0, len(answer.JSON200.Deliveries))
	for _, d := range answer.JSON200.Deliveries {
		last := ""
		if n := len(d.Attempts); n > 0 {
			last = d.Attempts[n-1].Cause + ": " + d.Attempts[n-1].Explanation
		}
		rows = append(rows, []string{moment(d.CreatedAt), d.Event, string(d.DeliveryStatus), strconv.Itoa(len(d.Attempts)), d.ID, last})
	}
	return s.table([]string{"RECORDED", "EVENT", "STATUS", "ATTEMPTS", "DELIVERY", "LAST ATTEMPT"}, rows)
}

// moment writes a time of the partner API for people.
func moment(t api.Timestamp) string { return t.UTC().Format(time.DateTime) + "Z" }

// explainByService prints what happened to a student, an event or a delivery.
func (s *session) explainByService(ctx context.Context, params *api.ExplainParams) error {
	partner, err := s.partner(ctx)
	if err != nil {
		return err
	}
	params.Limit = &s.limit
	answer, err := partner.ExplainWithResponse(ctx, params)
	if err != nil {
		return err
	}
	if answer.JSON200 == nil {
		return fmt.Errorf("%s answered %s; is it Registrar's partner API?", answer.HTTPResponse.Request.URL.Host, answer.Status())
	}
	if printed, err := s.print(answer.JSON200); printed {
		return err
	}
	for _, e := range answer.JSON200.Entries {
		fmt.Fprintf(s.stdout, "%s  %s\n", moment(e.At), e.Summary)
		if e.Reason != nil {
			fmt.Fprintf(s.stdout, "%22s%s\n", "", *e.Reason)
		}
	}
	return nil
}
