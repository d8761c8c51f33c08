"""The snippets of the text on the Agents SDK's handoffs, in `tests/fixtures/handoff_snippets/`:
each runs as it stands there, but for its imports, and hands over.

Models are OpenAI's own client against a server that speaks its wire format. Names that the text
leaves out are given here.
"""

import re
from datetime import datetime
from pathlib import Path

import pytest

from offbook.actors.handoffs.items import HandoffInputData, items_of
from offbook.runtime import Message
from tests.actors.handoffs.snippets import SNIPPETS, libraries, load, play, some_agents


@pytest.fixture
def provided(run, monkeypatch):
    """`provided(story)`: play it, with a provider."""
    return lambda story: play(story, run, monkeypatch)


def test_every_snippet_is_run_here():
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_snippets*.py"))
    assert [
        path.stem
        for path in sorted(SNIPPETS.glob("*.py"))
        if not re.search(rf'load\(\s*library,\s*"{path.stem}"', text)
    ] == []


# --- best practices ---


@libraries("tool_description")
def test_customer_service(library, provided, capsys):
    async def story(provider):
        names = await load(library, "customer_service", datetime=datetime)
        request = {
            "department": "billing",
            "priority": "urgent",
            "user_info": "Ann",
            "issue_summary": "paid twice",
        }
        for tool_name, last in [
            ("transfer_to_billingexpert", "BillingExpert"),
            ("transfer_to_technicalsupport", "TechnicalSupport"),
            ("transfer_to_salesconsultant", "SalesConsultant"),
        ]:
            provider.wants((tool_name, request))
            context = {}
            result = await library.run(names["triage_agent"], "我的账单有问题", context=context)
            assert (result.last_agent, context["priority_flag"], type(context["escalated_at"])) == (
                last,
                True,
                datetime,
            )
        said = capsys.readouterr().out
        assert said.startswith("交接到账单部门: paid twice\n优先级: urgent, 用户: Ann\n")

    provided(story)


@libraries("mapping")
def test_context_filter(library, provided):
    async def story(provider):
        names = await load(
            library, "context_filter", **some_agents(library, "billing_agent", "technical_agent")
        )
        asked = [
            {
                "role": "user",
                "content": f"{number}: my number is 123-45-6789, and what I have to say is rather long"
                * 2,
            }
            for number in range(12)
        ]
        provider.wants("transfer_to_billing_agent")
        result = await library.run(names["filtered_triage_agent"], asked)
        assert result.last_agent == "billing_agent"
        (summary,) = [
            message
            for message in provider.asked[-1]["messages"]
            if "摘要" in str(message["content"])
        ]
        assert summary["content"].startswith("[交接上下文摘要] 用户关注: 7: my number")
        assert [
            message["content"][:2]
            for message in provider.asked[-1]["messages"]
            if message["role"] == "user"
        ] == [
            "0:",
            "1:",
            *(f"{n}:"[:2] for n in range(4, 12)),
        ]
        provider.wants("transfer_to_technical_agent")
        assert (
            await library.run(names["filtered_triage_agent"], "hello")
        ).last_agent == "technical_agent"
        assert (
            names["filter_sensitive_info"]({"content": "123-45-6789 a@b.org"})["content"]
            == "[SSN] [EMAIL]"
        )

        @library.tool
        def look_up() -> str:
            """Look the account up."""
            return "a long story"

        names["simplify_tool_output"] = lambda item: {**item, "output": "in short"}
        filtered = library.handoff(
            names["billing_agent"], input_filter=names["create_context_aware_filter"]()
        )
        triage = library.Agent(name="triage", tools=[look_up], handoffs=[filtered])
        provider.wants(["look_up", "transfer_to_billing_agent"])
        await library.run(triage, "help")
        assert [text for role, text in provider.given if role == "tool"] == [
            "in short",
            '{"assistant": "billing_agent"}',
        ]
        items = HandoffInputData((), items_of([Message.assistant("I have looked.")]))
        assert "代理输出" in names["create_handoff_summary"](items)

    provided(story)


@libraries("tool_description")
def test_conditional(library, provided):
    async def story(provider):
        names = await load(library, "conditional")
        for tier, last in [("premium", "PremiumSupport"), ("enterprise", "EnterpriseSupport")]:
            provider.wants(f"transfer_to_{last.lower()}")
            result = await library.run(
                names["conditional_triage_agent"], "help", context={"user_tier": tier}
            )
            assert result.last_agent == last
        provider.wants("transfer_to_enterprisesupport")
        assert (
            await library.run(names["conditional_triage_agent"], "help", context={})
        ).last_agent == "ConditionalTriage"
        assert not {"transfer_to_premiumsupport", "transfer_to_enterprisesupport"} & set(
            provider.offered
        )

        hours = []

        class Wednesday(datetime):
            @classmethod
            def now(cls):
                return cls(2025, 10, 1, hours[-1])

        names["datetime"] = Wednesday
        for hour, is_open in [(8, False), (12, True)]:
            hours.append(hour)
            provider.wants("transfer_to_basicsupport")
            result = await library.run(names["conditional_triage_agent"], "help", context={})
            assert (result.last_agent == "BasicSupport") is is_open

    provided(story)


@libraries("tool_description")
def test_escalation(library, provided, capsys):
    async def story(provider):
        names = await load(library, "escalation", datetime=datetime)
        case = {
            "case_id": "?",
            "user_id": "u",
            "issue_type": "api",
            "severity": "high",
            "escalation_level": "level1",
            "previous_agents": [],
            "resolution_attempts": 0,
            "specialized_knowledge_needed": [],
        }
        manager = names["flow_manager"]
        made = manager.create_case("user_12345", "api", "high")
        provider.wants(("transfer_to_l3support", {**case, "case_id": made.case_id}))
        context = {"current_agent": "SupportCoordinator"}
        result = await library.run(names["support_coordinator"], "help", context=context)
        assert result.last_agent == "L3Support"
        assert (made.escalation_level.value, made.resolution_attempts) == ("level3", 1)
        assert context["case_data"].previous_agents == ["SupportCoordinator"]
        assert context["case_data"].specialized_knowledge_needed == ["expert_analysis"]
        assert any(
            "[案例升级摘要]" in str(message["content"]) and made.case_id in message["content"]
            for message in provider.asked[-1]["messages"]
        )
        provider.wants("transfer_to_l1support")
        await names["support_flow_example"]()
        assert "支持流程结果: done" in capsys.readouterr().out
        provider.wants(("transfer_to_l2support", case))
        await names["support_flow_example"]()
        assert "案例升级: ? -> L2Support" in capsys.readouterr().out

    provided(story)


@libraries("mapping")
def test_the_example_of_a_filter(library, provided):
    async def story(provider):
        seen = []
        names = await load(
            library,
            "context_aware_filter",
            contains_sensitive_content=lambda item: "1234" in str(item),
            create_placeholder_item=lambda item: seen.append(item) or {**item, "output": "[SAFE]"},
            filter_tool_output=lambda item: {**item, "output": "[FILTERED]"},
        )
        names |= some_agents(library, "expert")

        @library.tool
        def look_up() -> str:
            """Look the card up."""
            return "card 1234"

        triage = library.Agent(
            name="triage",
            tools=[look_up],
            handoffs=[library.handoff(names["expert"], input_filter=names["context_aware_filter"])],
        )
        provider.wants("look_up", "transfer_to_expert")
        assert (await library.run(triage, "help")).last_agent == "expert"
        assert [text for role, text in provider.given if role == "tool"] == [
            "[SAFE]",
            '{"assistant": "expert"}',
        ]
        assert [item.type for item in seen] == ["tool_call_output_item"]
        provider.wants(["look_up", "transfer_to_expert"])
        assert (await library.run(triage, "help")).last_agent == "expert"
        assert [text for role, text in provider.given if role == "tool"] == [
            "[FILTERED]",
            '{"assistant": "expert"}',
        ]

    provided(story)
