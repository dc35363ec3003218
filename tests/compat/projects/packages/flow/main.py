from helpers import describe

TITLE = "flow"


async def main(input, ctx):
    return f"{describe()}: {await ctx.call_agent('writer', {'input': input.input})}"
