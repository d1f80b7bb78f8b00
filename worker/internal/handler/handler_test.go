package handler_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/worker/internal/handler"
)

func TestMaintenanceFinishesItsTask(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	handlers := handler.Maintenance{DB: db, Clock: clock.System}.Handlers()
	for kind, status := range map[task.Kind]string{task.WebhookCancel: "cancelled", task.WebhookSkip: "waiting"} {
		var delivery string
		err := db.QueryRow(t.Context(), `
			INSERT INTO webhook_queue (id, event_id, organization_id, endpoint_id, due_at)
			VALUES (uuid7(), uuid7(), 1, 9, now()) RETURNING id`).Scan(&delivery)
		if err != nil {
			t.Fatal(err)
		}
		err = db.InTx(t.Context(), func(tx *pg.Tx) error { return outbox.Add(t.Context(), tx, kind, 9, 0, time.Now()) })
		if err != nil {
			t.Fatal(err)
		}
		claimed, err := outbox.Claim(t.Context(), db, kind, time.Now(), time.Minute, 1)
		check.NoError(check.Now(t), err, "%+v %v", claimed, err)
		check.Equal(check.Now(t), "number of claimed tasks", len(claimed), 1, "%+v %v", claimed, err)
		payload := task.Encode(task.Outbox{Task: claimed[0].ID, Claim: 1})
		for range 2 { // the second finds its claim over
			if err := handlers[kind](t.Context(), payload); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
		}
		var got string
		var pending int
		err = db.QueryRow(t.Context(), `SELECT status, (SELECT count(*) FROM outbox_tasks) FROM webhook_states WHERE id = $1`, delivery).Scan(&got, &pending)
		// Skipping concerns URLs that are off; endpoint 9 is none.
		if check.NoError(t, err, "%s: delivery %s, want %s; %d tasks pending (%v)", kind, got, status, pending, err) &&
			check.Equal(t, "got", got, status, "%s: delivery %s, want %s; %d tasks pending (%v)", kind, got, status, pending, err) {
			check.Equal(t, "pending", pending, 0, "%s: delivery %s, want %s; %d tasks pending (%v)", kind, got, status, pending, err)
		}
		if _, err := db.Exec(t.Context(), `DELETE FROM webhook_queue`); err != nil {
			t.Fatal(err)
		}
	}
	if err := handlers[task.WebhookSkip](t.Context(), []byte("{")); err == nil {
		t.Error("a payload that is none is taken")
	}
}
