"""A captured function waits for the GPU: `.item()`, `.tolist()`, `.cpu()`."""

from graphlint.api import Example, Finding, Rule, show


def check(project):
    for name in project.regions.captured:
        function = project.index.functions[name]
        for event in function.fact.events:
            if event.kind == "call" and show(event.a).endswith((".item()", ".tolist()", ".cpu()")):
                yield Finding(
                    rule=RULE.id, name=RULE.name, severity=RULE.severity, confidence="high", path=function.path, line=event.span.line,
                    message=f"`{show(event.a)}` waits for the GPU inside a captured function",
                )


SOURCE = """
class Model:
    def capture(self):
        self.manager.capture(self.forward)

    def forward(self, num_reqs):
        return self.logits[:num_reqs]{call}
"""
RULE = Rule(
    id="HS101", name="host-sync-in-capture", summary="a captured function waits for the GPU", severity="error", since="1.0.0",
    tokens=(b".item(", b".tolist(", b".cpu("), check=check,
    bad=(Example("item", SOURCE.format(call=".max().item()")), Example("list", SOURCE.format(call=".tolist()"))),
    good=(Example("stays on the device", SOURCE.format(call=".max()")),),
)
