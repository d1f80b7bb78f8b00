// Onboards a student, looks him up, and reads the lists of students and events.
import { Fault, listEvents, pages, provisionStudent, registrar, students } from "../src/index.js";

const client = registrar({ baseUrl: process.env.BASE_URL!, key: process.env.API_KEY! });

const { data: made } = await provisionStudent({
  client,
  body: { email: "kofi@demo-school.org", first_name: "Kofi", last_name: "Mensah", courses: ["ielts"] },
});
console.log(made.status, made.enrollments[0]?.action);

const { data: found } = await students({ client, query: { email: "kofi@demo-school.org" } });
if (found.object === "student") console.log(found.student.first_name, found.enrollments.length);

for await (const page of pages(students, { client, query: { limit: 1 } })) {
  for (const student of page.students) console.log(student.email);
}

for await (const page of pages(listEvents, { client, query: { types: "enrollment.created" } })) {
  for (const event of page.events) {
    if (event.type === "enrollment.created") console.log(event.type, event.data.enrollment.course_name);
  }
}

try {
  await students({ client, query: { email: "nobody@north-institute.org" } });
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  console.log(error.status, error.code);
}
